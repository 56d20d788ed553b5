#include "topology/topology.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "topology/names/node_id.h"

namespace espalier {

std::string_view to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu: return "gpu";
    case NodeKind::cpu: return "cpu";
    case NodeKind::nic: return "nic";
    case NodeKind::switch_node: return "switch";
    case NodeKind::pcie: return "pcie";
  }
  ESPALIER_CHECK(false, "a node kind without a name");
}

Bandwidth LinkValues::bandwidth() const {
  constexpr std::int64_t whole = 1'000'000;
  if (efficiency_ppm == whole) return nominal;
  const __int128 scaled = static_cast<__int128>(nominal.bytes_per_second) * efficiency_ppm / whole;
  return {static_cast<std::int64_t>(scaled)};
}

namespace {

Result<void> check_node(const Node& node) {
  if (const std::string_view why = why_bad_node_id(node.id); !why.empty()) {
    return fail(ErrorCode::invalid_input, "the node id '" + node.id.substr(0, 60) + "' " + std::string(why));
  }
  if (node.is_rank && node.kind != NodeKind::gpu && node.kind != NodeKind::cpu) {
    return fail(ErrorCode::invalid_input,
                "node " + node.id + " is a " + std::string(to_string(node.kind)) + " and cannot be a rank");
  }
  if (node.bandwidth.bytes_per_second < 0 || node.reduce_bandwidth.bytes_per_second < 0) {
    return fail(ErrorCode::invalid_input, "node " + node.id + " has a negative rate");
  }
  if (node.kind != NodeKind::switch_node && (node.multicast || node.reduction)) {
    return fail(ErrorCode::invalid_input, "node " + node.id + " copies or reduces in the network and is no switch");
  }
  if (node.rail.value_or(0) < 0) return fail(ErrorCode::invalid_input, "node " + node.id + " has a negative rail");
  return {};
}

Result<void> check_link(const Link& link, const std::vector<Node>& nodes) {
  if (link.tail.index() >= nodes.size() || link.head.index() >= nodes.size()) {
    return fail(ErrorCode::invalid_input, "a link's end is not a node of the topology");
  }
  const std::string name = nodes[link.tail.index()].id + ">" + nodes[link.head.index()].id;
  if (link.tail == link.head) return fail(ErrorCode::invalid_input, "link " + name + " joins a node to itself");
  if (link.efficiency_ppm <= 0 || link.efficiency_ppm > 1'000'000) {
    return fail(ErrorCode::invalid_input, "link " + name + " has an efficiency that is not above 0 and at most 1");
  }
  if (link.bandwidth().bytes_per_second <= 0) {
    return fail(ErrorCode::invalid_input, "link " + name + " has no bandwidth");
  }
  if (link.latency.count < 0 || link.overhead.count < 0) {
    return fail(ErrorCode::invalid_input, "link " + name + " has a negative latency or overhead");
  }
  return {};
}

/// Groups link ids by one of their ends: offsets per node, and ids in id order within a node.
void group_links(const std::vector<Link>& links, NodeId Link::*end, std::size_t node_count,
                 std::vector<std::uint32_t>& offsets, std::vector<LinkId>& grouped) {
  offsets.assign(node_count + 1, 0);
  for (const Link& link : links) ++offsets[(link.*end).index() + 1];
  for (std::size_t i = 0; i < node_count; ++i) offsets[i + 1] += offsets[i];
  grouped.resize(links.size());
  std::vector<std::uint32_t> next(offsets.begin(), offsets.end() - 1);
  for (std::size_t i = 0; i < links.size(); ++i) grouped[next[(links[i].*end).index()]++] = LinkId(i);
}

}  // namespace

Result<Topology> Topology::make(std::string name, std::vector<Node> nodes, std::vector<Link> links) {
  Topology topology;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (auto checked = check_node(nodes[i]); !checked) return tl::unexpected(checked.error());
    if (!topology.node_by_id_.emplace(nodes[i].id, NodeId(i)).second) {
      return fail(ErrorCode::invalid_input, "two nodes have the id " + nodes[i].id);
    }
    topology.node_ranks_.push_back(nodes[i].is_rank ? Rank(topology.rank_nodes_.size()) : Rank());
    if (!nodes[i].is_rank) continue;
    Rank& first = nodes[i].relay ? topology.first_relaying_ : topology.first_not_relaying_;
    if (first.is_none()) first = topology.node_ranks_.back();
    topology.rank_nodes_.emplace_back(i);
  }
  if (topology.rank_nodes_.empty()) return fail(ErrorCode::invalid_input, "the topology has no ranks");
  for (const Link& link : links) {
    if (auto checked = check_link(link, nodes); !checked) return tl::unexpected(checked.error());
  }
  group_links(links, &Link::tail, nodes.size(), topology.out_offsets_, topology.out_links_);
  group_links(links, &Link::head, nodes.size(), topology.in_offsets_, topology.in_links_);
  topology.name_ = std::move(name);
  topology.nodes_ = std::move(nodes);
  topology.links_ = std::move(links);
  return topology;
}

std::span<const LinkId> Topology::out_links(NodeId node) const {
  return std::span(out_links_)
      .subspan(out_offsets_[node.index()], out_offsets_[node.index() + 1] - out_offsets_[node.index()]);
}

std::span<const LinkId> Topology::in_links(NodeId node) const {
  return std::span(in_links_).subspan(in_offsets_[node.index()],
                                      in_offsets_[node.index() + 1] - in_offsets_[node.index()]);
}

NodeId Topology::find_node(std::string_view id) const {
  const auto found = node_by_id_.find(std::string(id));
  return found == node_by_id_.end() ? NodeId() : found->second;
}

std::vector<LinkId> Topology::links_between(NodeId tail, NodeId head) const {
  // A switch may have tens of thousands of links, and what hangs on it a few.
  const std::span<const LinkId> out = out_links(tail), in = in_links(head);
  std::vector<LinkId> between;
  for (const LinkId id : out.size() <= in.size() ? out : in) {
    if (link(id).tail == tail && link(id).head == head) between.push_back(id);
  }
  return between;
}

std::string Topology::link_name(LinkId id) const {
  const Link& named = link(id);
  std::string name = node(named.tail).id + ">" + node(named.head).id;
  const std::vector<LinkId> parallel = links_between(named.tail, named.head);
  if (parallel.size() > 1) {
    name += "#" + std::to_string(std::find(parallel.begin(), parallel.end(), id) - parallel.begin());
  }
  return name;
}

std::shared_ptr<const HostKinds> Topology::kinds_of_hosts() const {
  return host_kinds_ ? host_kinds_ : std::make_shared<const HostKinds>(find_host_kinds(*this));
}

LinkId Topology::find_link(std::string_view name) const {
  const std::size_t arrow = name.find('>');
  if (arrow == std::string_view::npos) return {};
  const NodeId tail = find_node(name.substr(0, arrow));
  std::string_view rest = name.substr(arrow + 1);
  const std::size_t hash = rest.rfind('#');
  const NodeId head = find_node(rest.substr(0, hash));
  if (tail.is_none() || head.is_none()) return {};
  const std::vector<LinkId> parallel = links_between(tail, head);
  if (hash == std::string_view::npos) return parallel.size() == 1 ? parallel.front() : LinkId();
  std::size_t ordinal = 0;
  const std::string_view digits = rest.substr(hash + 1);
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (status != std::errc() || end != digits.data() + digits.size() || ordinal >= parallel.size()) return {};
  return parallel[ordinal];
}

}  // namespace espalier
