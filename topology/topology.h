#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/units.h"

namespace espalier {

enum class NodeKind : std::uint8_t { gpu, cpu, nic, switch_node, pcie };

/// "gpu", "cpu", "nic", "switch", "pcie".
std::string_view to_string(NodeKind kind);

/// A vertex of the network. Only ranks hold data; all other nodes forward.
struct Node {
  std::string id;  ///< Unique in its topology; see node_id.h for what may be in it.
  NodeKind kind = NodeKind::gpu;
  bool is_rank = true;         ///< Holds data and takes part in collectives; only gpu and cpu nodes may.
  bool relay = true;           ///< A rank that may send on what other ranks brought; means nothing on other nodes.
  Bandwidth bandwidth;         ///< Backplane that all traffic through the node shares; zero: not limited.
  Bandwidth reduce_bandwidth;  ///< Bytes per second that this rank or switch reduces; zero: not limited.
  bool multicast = false;      ///< A switch that copies in the network.
  bool reduction = false;      ///< A switch that reduces in the network.
  std::string host;            ///< The machine it sits in; empty when not given.
  std::optional<std::int32_t> rail;  ///< Which rail of the fabric it belongs to.

  /// A rank that sends nothing but what it brought itself.
  [[nodiscard]] bool must_not_relay() const { return is_rank && !relay; }
};

/// One directed edge. A duplex cable is two links.
struct Link {
  NodeId tail;
  NodeId head;
  Bandwidth nominal;                        ///< The rate as written, bytes per second.
  Picoseconds latency;                      ///< From the head of a message entering to its arrival at the far end.
  Picoseconds overhead;                     ///< Per-message cost at the sender.
  std::int32_t efficiency_ppm = 1'000'000;  ///< The reachable part of the nominal rate, in millionths.
  std::string link_class;                   ///< Name of its class ("nvlink2"); empty when not given.

  /// The rate that planners, bounds and simulation count with: nominal x efficiency, rounded down.
  [[nodiscard]] Bandwidth bandwidth() const;
};

/// The network as an immutable directed multigraph with dense ids. Safe to share between threads.
///
/// Invariants: (1) node ids are unique and well formed (node_id.h); (2) link ends are in range and differ; (3) all
/// rates are positive, efficiencies above 0 and at most 1; (4) ranks are numbered in node order; (5) there is at least
/// one rank; (6) only switches have multicast or reduction; (7) rails count from 0.
class Topology {
 public:
  /// Errors: invalid_input when an invariant would not hold, naming the node or link.
  [[nodiscard]] static Result<Topology> make(std::string name, std::vector<Node> nodes, std::vector<Link> links);

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
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<NodeId> rank_nodes_;
  std::vector<Rank> node_ranks_;
  Rank first_relaying_, first_not_relaying_;
  std::vector<std::uint32_t> out_offsets_, in_offsets_;
  std::vector<LinkId> out_links_, in_links_;
  std::unordered_map<std::string, NodeId> node_by_id_;
};

/// By node: whether a walk from `start` along links, or against them, reaches it. It passes no rank that must not
/// relay.
std::vector<bool> reached_from(const Topology& topology, NodeId start, bool forwards);

/// A rank that some other rank cannot reach, with that other rank; nothing when every rank reaches every other without
/// passing ranks that must not relay.
struct Unreachable {
  Rank from;
  Rank to;
};
std::optional<Unreachable> find_unreachable(const Topology& topology);

/// "rank a cannot reach rank b", with the ranks that must not relay and stand in the way.
std::string describe_unreachable(const Topology& topology, const Unreachable& pair);

}  // namespace espalier
