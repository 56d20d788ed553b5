#include "planners/explain/class_loads.h"

#include <algorithm>
#include <map>

#include "base/format_units.h"

namespace espalier::planners {

double part_of_bound(const Schedule& schedule, const Topology& topology, const Loads& loads, const Bound& bound,
                     LinkId link) {
  return to_double(link_share(schedule, topology, loads, link) * loads.time_per_byte / bound.time_per_byte);
}

std::vector<ClassLoad> group_loads(const Schedule& schedule, const Topology& topology, const Loads& loads,
                                   const Bound& bound) {
  std::vector<ClassLoad> groups;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const std::string name = link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class;
    const auto [place, is_new] = index.emplace(name, groups.size());
    if (is_new) groups.push_back({name});
    ClassLoad& group = groups[place->second];
    ++group.links;
    if (loads.link_units[i] == 0) continue;
    const double busy = part_of_bound(schedule, topology, loads, bound, LinkId(i));
    ++group.used;
    group.most = std::max(group.most, busy);
    group.mean += busy;
  }
  for (ClassLoad& group : groups) group.mean /= static_cast<double>(group.links);
  return groups;
}

}  // namespace espalier::planners
