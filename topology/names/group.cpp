#include "topology/names/group.h"

#include <fmt/format.h>

#include "base/suggest.h"
#include "topology/names/name_list.h"
#include "topology/names/patterns.h"

namespace espalier {
namespace {

bool can_be_rank(const Node& node) { return node.kind == NodeKind::gpu || node.kind == NodeKind::cpu; }

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The items of a list; commas in brackets part none.
std::vector<std::string_view> split_items(std::string_view list) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool in_brackets = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') in_brackets = true;
    if (i < list.size() && list[i] == ']') in_brackets = false;
    if (i < list.size() && (list[i] != ',' || in_brackets)) continue;
    items.push_back(trimmed(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  return items;
}

tl::unexpected<Error> no_such_node(const Topology& topology, std::string_view name) {
  constexpr std::size_t max_shown = 60;
  std::vector<std::string_view> known;
  std::vector<std::string> names;
  for (const Node& node : topology.nodes()) {
    if (!can_be_rank(node)) continue;
    known.push_back(node.id);
    names.push_back(node.id);
  }
  std::string help = suggest(name, known);
  if (help.starts_with("known")) help = "the gpu and cpu nodes are " + summarize_names(names);
  return fail(ErrorCode::invalid_input,
              fmt::format("there is no node '{}' in {}", name.substr(0, max_shown), topology.name()), help);
}

/// The nodes of one item of a list, in its order; those of a star in node order.
Result<std::vector<NodeId>> nodes_of(const Topology& topology, std::string_view item) {
  const auto pattern = NamePattern::parse(item);
  if (!pattern) return fail(ErrorCode::invalid_input, pattern.error().message, pattern.error().help);
  std::vector<NodeId> nodes;
  if (pattern->has_star()) {
    for (std::size_t i = 0; i < topology.node_count(); ++i) {
      if (pattern->matches(topology.node(NodeId(i)).id)) nodes.emplace_back(i);
    }
    if (nodes.empty()) return no_such_node(topology, item);
    return nodes;
  }
  if (pattern->size() > topology.node_count()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' stands for {} nodes, more than {} has", item, pattern->size(), topology.name()),
                "name those that are there");
  }
  for (const std::string& name : pattern->names()) {
    nodes.push_back(topology.find_node(name));
    if (nodes.back().is_none()) return no_such_node(topology, name);
  }
  return nodes;
}

/// An error when one of the nodes cannot be a rank or is given twice.
Result<void> check_nodes(const Topology& topology, std::span<const NodeId> nodes) {
  std::vector<bool> seen(topology.node_count(), false);
  for (const NodeId id : nodes) {
    const Node& node = topology.node(id);
    if (!can_be_rank(node)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("'{}' is a {}, and ranks are gpu or cpu nodes", node.id, to_string(node.kind)));
    }
    if (seen[id.index()]) {
      return fail(ErrorCode::invalid_input, fmt::format("'{}' is named twice", node.id), "name each rank once");
    }
    seen[id.index()] = true;
  }
  if (nodes.empty()) return fail(ErrorCode::invalid_input, "there are no ranks", "name at least one gpu or cpu node");
  return {};
}

}  // namespace

Result<std::vector<NodeId>> find_rank_nodes(const Topology& topology, std::string_view list) {
  std::vector<NodeId> nodes;
  if (list == "all" && topology.find_node(list).is_none()) {
    for (std::size_t r = 0; r < topology.rank_count(); ++r) nodes.push_back(topology.node_of(Rank(r)));
    return nodes;
  }
  for (const std::string_view item : split_items(list)) {
    if (item.empty()) {
      return fail(ErrorCode::invalid_input, "a name is missing in the list of ranks",
                  "write names and ranges parted by commas, such as gpu[0-3],gpu7");
    }
    const auto found = nodes_of(topology, item);
    if (!found) return found;
    nodes.insert(nodes.end(), found->begin(), found->end());
  }
  if (auto checked = check_nodes(topology, nodes); !checked) return tl::unexpected(checked.error());
  return nodes;
}

Result<Topology> with_ranks(const Topology& topology, std::span<const NodeId> nodes) {
  if (auto checked = check_nodes(topology, nodes); !checked) return tl::unexpected(checked.error());
  std::vector<Node> marked(topology.nodes().begin(), topology.nodes().end());
  std::vector<bool> is_barred(marked.size(), false);  // Outside the group, and nothing may pass it.
  for (std::size_t i = 0; i < marked.size(); ++i) {
    is_barred[i] = marked[i].must_not_relay();
    marked[i].is_rank = false;
  }
  for (const NodeId id : nodes) {
    marked[id.index()].is_rank = true;
    is_barred[id.index()] = false;
  }
  std::vector<Link> links;
  for (const Link& link : topology.links()) {
    if (!is_barred[link.tail.index()] && !is_barred[link.head.index()]) links.push_back(link);
  }
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (is_barred[i]) marked[i].relay = true;
  }
  auto some = Topology::make(topology.name(), std::move(marked), std::move(links));
  if (!some) return some;
  return std::move(*some).as_altered(topology);
}

}  // namespace espalier
