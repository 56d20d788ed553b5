#include "topology/yaml/like_boxes.h"

#include <algorithm>
#include <string_view>

namespace espalier {
namespace {

/// The boxes if all are as the first one is, by its nodes alone.
std::optional<LikeBoxes> boxes_of_first(const Topology& topology) {
  const auto nodes = topology.nodes();
  const auto first = std::ranges::find_if(nodes, [](const Node& node) { return !node.host.empty(); });
  if (first == nodes.end() || first->host.size() < 2 || !first->host.ends_with('0')) return std::nullopt;
  LikeBoxes boxes;
  boxes.name = first->host.substr(0, first->host.size() - 1);
  const bool is_word = std::ranges::all_of(boxes.name, [](char c) { return c >= 'a' && c <= 'z'; });
  boxes.first_node = static_cast<std::size_t>(first - nodes.begin());
  const auto next = std::find_if(first, nodes.end(), [&](const Node& node) { return node.host != first->host; });
  boxes.nodes = static_cast<std::size_t>(next - first);
  boxes.count = (nodes.size() - boxes.first_node) / boxes.nodes;
  if (!is_word || boxes.count < 2 || boxes.first_node + boxes.count * boxes.nodes != nodes.size()) return std::nullopt;
  return boxes;
}

bool are_nodes_alike(const Topology& topology, const LikeBoxes& boxes) {
  const std::string first = boxes.prefix(0);
  const auto models = topology.nodes().subspan(boxes.first_node, boxes.nodes);
  const auto outside = topology.nodes().first(boxes.first_node);
  for (const Node& model : models) {
    if (!model.id.starts_with(first) || model.id.size() == first.size()) return false;
    const std::string_view inside = std::string_view(model.id).substr(first.size());
    if (std::ranges::find(outside, inside, &Node::id) != outside.end()) return false;  // The inner one would be found.
  }
  for (std::size_t box = 1; box < boxes.count; ++box) {
    const std::string prefix = boxes.prefix(box);
    for (std::size_t i = 0; i < boxes.nodes; ++i) {
      Node expected = models[i];
      expected.id.replace(0, first.size(), prefix);
      expected.host = prefix.substr(0, prefix.size() - 1);
      if (topology.nodes()[boxes.first_node + box * boxes.nodes + i] != expected) return false;
    }
  }
  return true;
}

/// Whether a box's links are the first one's with its own nodes in their place.
bool are_links_alike(const Topology& topology, const LikeBoxes& boxes, std::size_t box) {
  const std::size_t end = boxes.first_node + boxes.nodes;
  const auto image = [&](NodeId id) {
    return id.index() < boxes.first_node ? id : NodeId(id.index() + box * boxes.nodes);
  };
  for (std::size_t i = 0; i < boxes.links; ++i) {
    const Link& model = topology.links()[i];
    if (model.tail.index() >= end || model.head.index() >= end) return false;
    if (topology.links()[box * boxes.links + i] != Link(image(model.tail), image(model.head), model.values())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string LikeBoxes::prefix(std::size_t box) const { return name + std::to_string(box) + "."; }

std::optional<LikeBoxes> find_like_boxes(const Topology& topology) {
  auto boxes = boxes_of_first(topology);
  if (!boxes || !are_nodes_alike(topology, *boxes)) return std::nullopt;
  const auto is_of_first = [&](NodeId id) {
    return id.index() >= boxes->first_node && id.index() < boxes->first_node + boxes->nodes;
  };
  const auto links = topology.links();
  while (boxes->links < links.size() &&
         (is_of_first(links[boxes->links].tail) || is_of_first(links[boxes->links].head))) {
    ++boxes->links;
  }
  if (boxes->links * boxes->count > links.size()) return std::nullopt;
  for (std::size_t box = 0; box < boxes->count; ++box) {
    if (!are_links_alike(topology, *boxes, box)) return std::nullopt;
  }
  return boxes;
}

}  // namespace espalier
