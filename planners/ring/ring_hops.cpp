#include "planners/ring/ring_hops.h"

namespace espalier::planners {

std::vector<Entry> resource_loads(const ResourceGraph& graph, std::span<const std::int64_t> uses) {
  std::vector<std::int64_t> loads(graph.capacity.size(), 0);
  for (std::size_t e = 0; e < uses.size(); ++e) {
    for (const std::uint32_t resource : graph.edges[e].resources) loads[resource] += uses[e];
  }
  std::vector<Entry> entries;
  for (std::uint32_t resource = 0; resource < loads.size(); ++resource) {
    if (loads[resource] != 0) entries.push_back({resource, loads[resource]});
  }
  return entries;
}

}  // namespace espalier::planners
