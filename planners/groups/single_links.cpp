#include "planners/groups/single_links.h"

#include <set>
#include <string>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

SingleLinks with_single_links(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (Node& node : nodes) node.multicast = node.reduction = false;
  std::vector<LinkId> originals;
  for (std::size_t i = 0; i < links.size(); ++i) originals.emplace_back(i);
  std::set<std::pair<NodeId, NodeId>> joined;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (joined.emplace(links[i].tail, links[i].head).second) continue;
    Node middle;
    middle.kind = NodeKind::switch_node;
    middle.is_rank = false;
    middle.id = "parallel " + std::to_string(i);
    while (!topology.find_node(middle.id).is_none()) middle.id += "'";
    Link second = links[i];
    second.tail = NodeId(nodes.size());
    links[i].head = second.tail;
    nodes.push_back(std::move(middle));
    links.push_back(std::move(second));
    originals.emplace_back();
  }
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "a topology stays one when its parallel links are parted");
  return {*std::move(made), std::move(originals)};
}

std::vector<LinkId> original_route(const SingleLinks& single, const std::vector<LinkId>& route) {
  std::vector<LinkId> links;
  for (const LinkId link : route) {
    const LinkId original = single.originals[link.index()];
    if (!original.is_none()) links.push_back(original);
  }
  return links;
}

}  // namespace espalier::planners
