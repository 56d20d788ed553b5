#include "sim/critical_path/path_times.h"

#include <algorithm>

#include "base/format_units.h"

namespace espalier::sim {

std::string class_of(const Link& link) {
  return link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class;
}

PathPlace place_of(const PathPart& part, const Topology& topology) {
  if (!part.link.is_none()) return {class_of(topology.link(part.link)), topology.link_name(part.link)};
  const Node& node = topology.node(part.node);
  return {node.is_rank ? "ranks" : "switches", node.id};
}

void PathTimes::add(const PathPart& part) {
  PathPlace place = place_of(part, topology_);
  Sum& sum = sums_[{part.use, std::move(place.where)}];
  sum.time += part.time.count;
  sum.parts[std::move(place.at)] += part.time.count;
}

std::vector<PathTime> PathTimes::shares() const {
  std::vector<PathTime> shares;
  for (const auto& [key, sum] : sums_) {
    const auto most = std::ranges::max_element(sum.parts, {}, [](const auto& part) { return part.second; });
    shares.push_back({key.first, key.second, {sum.time}, most->first, {most->second}});
  }
  std::ranges::stable_sort(shares, [](const PathTime& a, const PathTime& b) { return a.time > b.time; });
  return shares;
}

}  // namespace espalier::sim
