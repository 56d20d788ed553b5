#pragma once

// Tested by: tests/unit/topology/boost_graph_test.cpp

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "topology/host_kinds.h"
#include "topology/link.h"
#include "topology/node.h"

namespace espalier {

/// The network as an immutable directed multigraph with dense ids. Safe to share between threads.
///
/// Invariants: (1) node ids are unique and well formed (node_id.h); (2) link ends are in range and differ; (3) all
/// rates are positive, efficiencies above 0 and at most 1; (4) ranks are numbered in node order; (5) there is at least
/// one rank; (6) only switches have multicast or reduction; (7) rails count from 0.
class Topology {
 public:
  /// Errors: invalid_input when an invariant would not hold, naming the node or link.
  [[nodiscard]] static Result<Topology> make(std::string name, std::vector<Node> nodes, std::vector<Link> links);

  /// The same, marked as changed on purpose: parts were taken away, slowed down or left out of a network that was whole
  /// as it came. What is planned for it does not depend on its numbers (planners/symmetry/canonical_network.h).
  [[nodiscard]] Topology as_altered(const Topology& before) && {
    is_altered_ = is_seen_altered_ = true;
    host_kinds_ = before.kinds_of_hosts();
    return std::move(*this);
  }
  [[nodiscard]] bool is_altered() const { return is_altered_; }
  /// The same, of which no link's report tells; what reports told of it before still counts.
  [[nodiscard]] Topology as_altered_unseen(const Topology& before) && {
    is_altered_ = true;
    is_seen_altered_ = before.is_seen_altered_;
    host_kinds_ = before.kinds_of_hosts();
    return std::move(*this);
  }
  /// Whether it is altered as far as its links report (Link::reported).
  [[nodiscard]] bool is_seen_altered() const { return is_seen_altered_; }
  /// The kinds of machines that it had before it was altered: what is planned keeps those of one kind in the places
  /// that such machines had. Cost where it is not altered: find_host_kinds.
  [[nodiscard]] std::shared_ptr<const HostKinds> kinds_of_hosts() const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  [[nodiscard]] std::size_t rank_count() const { return rank_nodes_.size(); }

  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id.index()]; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const Link> links() const { return links_; }

  /// The node of a rank, and the rank of a node (none for nodes that only forward).
  [[nodiscard]] NodeId node_of(Rank rank) const { return rank_nodes_[rank.index()]; }
  [[nodiscard]] Rank rank_of(NodeId node) const { return node_ranks_[node.index()]; }
  [[nodiscard]] const std::string& rank_name(Rank rank) const { return node(node_of(rank)).id; }
  /// Whether a rank may send on what other ranks brought.
  [[nodiscard]] bool may_relay(Rank rank) const { return node(node_of(rank)).relay; }
  /// The first rank that may relay, or none; and the first one that must not.
  [[nodiscard]] Rank first_relaying() const { return first_relaying_; }
  [[nodiscard]] Rank first_not_relaying() const { return first_not_relaying_; }

  /// Links that leave or enter a node, in id order.
  [[nodiscard]] std::span<const LinkId> out_links(NodeId node) const;
  [[nodiscard]] std::span<const LinkId> in_links(NodeId node) const;

  /// The node with this id, or none.
  [[nodiscard]] NodeId find_node(std::string_view id) const;

  /// "tail>head", or "tail>head#k" for the k-th (from 0, in id order) of several links from tail to head.
  [[nodiscard]] std::string link_name(LinkId link) const;
  /// The inverse of link_name; none when there is no such link or "tail>head" is ambiguous.
  [[nodiscard]] LinkId find_link(std::string_view name) const;
  /// The links from tail to head, in id order.
  [[nodiscard]] std::vector<LinkId> links_between(NodeId tail, NodeId head) const;

 private:
  Topology() = default;

  std::string name_;
  bool is_altered_ = false;
  bool is_seen_altered_ = false;
  std::shared_ptr<const HostKinds> host_kinds_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<NodeId> rank_nodes_;
  std::vector<Rank> node_ranks_;
  Rank first_relaying_, first_not_relaying_;
  std::vector<std::uint32_t> out_offsets_, in_offsets_;
  std::vector<LinkId> out_links_, in_links_;
  std::unordered_map<std::string, NodeId> node_by_id_;
};

}  // namespace espalier
