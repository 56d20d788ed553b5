#include "topology/cables.h"

#include <algorithm>

namespace espalier {

std::vector<Cable> find_cables(const Topology& topology) {
  std::vector<Cable> cables;
  std::vector<bool> is_done(topology.link_count(), false);
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (is_done[i]) continue;
    const Link& link = topology.link(LinkId(i));
    const std::vector<LinkId> there = topology.links_between(link.tail, link.head);
    const std::vector<LinkId> back = topology.links_between(link.head, link.tail);
    const auto place = static_cast<std::size_t>(std::ranges::find(there, LinkId(i)) - there.begin());
    Cable cable{LinkId(i), place < back.size() ? back[place] : LinkId()};
    if (!cable.back.is_none()) is_done[cable.back.index()] = true;
    cables.push_back(cable);
  }
  return cables;
}

std::string cable_name(const Topology& topology, const Cable& cable) {
  if (cable.back.is_none()) return topology.link_name(cable.there);
  const Link& link = topology.link(cable.there);
  const std::vector<LinkId> there = topology.links_between(link.tail, link.head);
  const std::size_t count = std::min(there.size(), topology.links_between(link.head, link.tail).size());
  std::string name = topology.node(link.tail).id + "-" + topology.node(link.head).id;
  if (count > 1) name += "#" + std::to_string(std::ranges::find(there, cable.there) - there.begin());
  return name;
}

}  // namespace espalier
