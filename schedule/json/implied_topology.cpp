#include "schedule/json/implied_topology.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "topology/names/node_id.h"

namespace espalier {
namespace {

/// Parallel links that a name such as "a>b#7" can imply; a larger number is a slip, and would cost memory.
constexpr std::uint64_t max_parallel_links = 256;

class ImpliedNetwork {
 public:
  ImpliedNetwork(PlanCursor& cursor, const NamedNodes& named) : cursor_(cursor) {
    for (const std::string& rank : named.ranks) add_node(rank, true);
    for (const std::string& relay : named.relays) {
      Node& node = nodes_[add_node(relay, false).index()];
      node.multicast = node.reduction = !node.is_rank;  // A relay that is a rank is for the rules to find.
    }
  }

  /// All names in the "route" of each transfer.
  bool read_transfers();
  /// All names in a list of nodes.
  bool read_cut();
  Topology build(const std::string& name);

 private:
  /// A node by its name, or a hop of a route; false when the cursor has failed.
  bool note_node(std::size_t offset, std::string_view name, NodeId& node);
  bool note_link(std::size_t offset, std::string_view name, NodeId& head);
  bool read_route(std::size_t offset);
  NodeId add_node(std::string_view name, bool is_rank);
  void add_links(NodeId tail, NodeId head, std::uint64_t count);

  PlanCursor& cursor_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, NodeId> node_by_name_;
  std::vector<Link> links_;
  std::unordered_map<std::uint64_t, std::uint64_t> parallel_;  ///< Links by tail and head.
  std::unordered_set<std::string_view> known_routes_;
};

NodeId ImpliedNetwork::add_node(std::string_view name, bool is_rank) {
  const auto [found, is_new] = node_by_name_.try_emplace(std::string(name), NodeId(nodes_.size()));
  if (is_new) {
    Node node;
    node.id = name;
    node.kind = is_rank ? NodeKind::gpu : NodeKind::switch_node;
    node.is_rank = is_rank;
    nodes_.push_back(std::move(node));
  }
  return found->second;
}

void ImpliedNetwork::add_links(NodeId tail, NodeId head, std::uint64_t count) {
  std::uint64_t& known = parallel_[std::uint64_t{tail.value()} << 32U | head.value()];
  for (; known < count; ++known) {
    Link link;
    link.tail = tail;
    link.head = head;
    link.nominal = Bandwidth{1};
    links_.push_back(std::move(link));
  }
}

bool ImpliedNetwork::note_node(std::size_t offset, std::string_view name, NodeId& node) {
  const std::string_view why = why_bad_node_id(name);
  if (!why.empty())
    return cursor_.json.fail(offset, fmt::format("'{}' cannot be a node's name: it {}", shown(name), why));
  node = add_node(name, false);
  return true;
}

bool ImpliedNetwork::note_link(std::size_t offset, std::string_view name, NodeId& head) {
  const std::size_t arrow = name.find('>');
  std::string_view head_name = name.substr(arrow + 1);
  std::uint64_t ordinal = 0;
  if (const std::size_t hash = head_name.rfind('#'); hash != std::string_view::npos) {
    const std::string_view digits = head_name.substr(hash + 1);
    head_name = head_name.substr(0, hash);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (status != std::errc() || end != digits.data() + digits.size() || ordinal >= max_parallel_links) {
      return cursor_.json.fail(offset,
                               fmt::format("the link '{}' has no number from 0 to 255 behind its '#'", shown(name)));
    }
  }
  NodeId tail;
  if (!note_node(offset, name.substr(0, arrow), tail) || !note_node(offset, head_name, head)) return false;
  if (tail == head) return cursor_.json.fail(offset, fmt::format("the link '{}' joins a node to itself", shown(name)));
  add_links(tail, head, ordinal + 1);
  return true;
}

bool ImpliedNetwork::read_route(std::size_t offset) {
  if (!cursor_.json.begin_array()) return false;
  NodeId at;
  bool at_node_name = false;
  std::string_view name;
  while (cursor_.json.next_element()) {
    offset = cursor_.json.next_offset();
    if (!cursor_.json.read_string(name)) return false;
    const bool is_link = name.find('>') != std::string_view::npos;
    const NodeId before = at;
    if (!(is_link ? note_link(offset, name, at) : note_node(offset, name, at))) return false;
    const bool is_hop = !is_link && !before.is_none() && (before != at || at_node_name);
    if (is_hop && before == at) {
      return cursor_.json.fail(offset, fmt::format("the route goes from '{}' to itself", shown(name)));
    }
    if (is_hop) add_links(before, at, 1);
    at_node_name = !is_link;
  }
  return !cursor_.json.failed();
}

bool ImpliedNetwork::read_transfers() {
  if (!cursor_.json.begin_array()) return false;
  std::string_view key;
  std::string_view raw;
  for (std::size_t i = 0; cursor_.json.next_element(); ++i) {
    cursor_.set_item("transfer", i);
    if (!cursor_.json.begin_object()) return false;
    while (cursor_.json.next_key(key)) {
      const bool is_route = key == "route";
      const std::size_t begin = cursor_.json.next_offset();
      if (!cursor_.json.read_raw(raw)) return false;
      if (!is_route || !known_routes_.insert(raw).second) continue;
      cursor_.json.seek(begin);
      if (!read_route(begin)) return false;
    }
  }
  cursor_.clear_item();
  return !cursor_.json.failed();
}

bool ImpliedNetwork::read_cut() {
  if (!cursor_.json.begin_array()) return false;
  std::string_view name;
  while (cursor_.json.next_element()) {
    const std::size_t begin = cursor_.json.next_offset();
    NodeId ignored;
    if (!cursor_.json.read_string(name) || !note_node(begin, name, ignored)) return false;
  }
  return !cursor_.json.failed();
}

Topology ImpliedNetwork::build(const std::string& name) {
  Result<Topology> topology = Topology::make(name, std::move(nodes_), std::move(links_));
  ESPALIER_CHECK(topology.has_value(), "implied names were checked");
  return std::move(*topology);
}

bool read_cut_of_bound(PlanCursor& cursor, ImpliedNetwork& network, std::size_t bound) {
  cursor.json.seek(bound);
  if (cursor.json.take_null()) return true;
  if (!cursor.json.begin_object()) return false;
  std::string_view key;
  std::string_view ignored;
  while (cursor.json.next_key(key)) {
    if (!(key == "cut" ? network.read_cut() : cursor.json.read_raw(ignored))) return false;
  }
  return !cursor.json.failed();
}

}  // namespace

std::optional<Topology> imply_topology(PlanCursor& cursor, const std::string& name, const NamedNodes& named,
                                       const NamingParts& parts) {
  ImpliedNetwork network(cursor, named);
  cursor.json.seek(parts.transfers);
  if (!network.read_transfers()) return std::nullopt;
  if (parts.bound && !read_cut_of_bound(cursor, network, *parts.bound)) return std::nullopt;
  return network.build(name);
}

}  // namespace espalier
