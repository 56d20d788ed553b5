#include "planners/packing/reduce/root_network.h"

#include <utility>

#include "planners/packing/realize_trees.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_grown_ranks = 512;
constexpr std::int64_t max_grown_capacity = std::int64_t{1} << 56U;

}  // namespace

std::optional<RootNetwork> root_network(const PackingProblem& problem, const ParallelSwitches* parallel) {
  if (problem.rank_count() > max_grown_ranks || problem.has_backplanes()) return std::nullopt;
  if (parallel != nullptr && parallel->empty()) return std::nullopt;
  const FlowNetwork& network = problem.network;
  std::vector<std::int64_t> capacities, counts;
  __int128 sum = 0;
  for (const FlowArc& arc : network.arcs()) {
    const std::int64_t planes = parallel == nullptr ? 1 : static_cast<std::int64_t>(parallel->planes(arc.link));
    const bool stands = parallel == nullptr || parallel->in_plane(arc.link, 0) == arc.link;
    const __int128 room = stands ? static_cast<__int128>(arc.capacity) * planes : 0;
    sum += room;
    if (sum >= max_grown_capacity) return std::nullopt;
    const bool enters_root = arc.head == network.vertex_of(problem.root);
    capacities.push_back(enters_root ? 0 : static_cast<std::int64_t>(room));
    if (parallel != nullptr) counts.push_back(planes);
  }
  const auto rate = static_cast<std::int64_t>(problem.cut.capacity);
  return RootNetwork{network.with_capacities(capacities), problem.root, rate, std::move(counts)};
}

std::optional<std::vector<Arborescence>> lift(const PackingProblem& problem, const RootNetwork& network,
                                              const ParallelSwitches* parallel, std::span<const ParentTree> trees) {
  std::vector<Arborescence> lifted;
  std::int64_t sum = 0;
  for (const ParentTree& tree : trees) {
    lifted.push_back(over_links(problem.network, tree));
    sum += tree.weight;
  }
  if (parallel == nullptr) {
    reduce_weights(lifted);
    return lifted;
  }
  for (Arborescence& tree : lifted) tree.weight *= network.rate;
  std::vector<std::int64_t> capacities;
  for (const FlowArc& arc : problem.network.arcs()) capacities.push_back(arc.capacity * sum);
  return parallel->lift(capacities, lifted, network.rate);
}

}  // namespace espalier::planners
