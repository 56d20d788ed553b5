#pragma once

// Tested by: tests/unit/planners/graph/residual_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/topology.h"

namespace espalier::planners {

/// The links of a route, in the order a message takes them.
using Path = std::vector<LinkId>;

/// The rate that is left on every link and backplane while rings and trees take their shares.
///
/// Invariant: nothing is ever below zero. Not for use by two threads at once: queries share scratch memory.
class Residual {
 public:
  explicit Residual(const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// Bytes per second left on a link.
  [[nodiscard]] std::int64_t room(LinkId link) const { return link_room_[link.index()]; }
  /// The largest rate that this route could still take.
  [[nodiscard]] std::int64_t room(std::span<const LinkId> route) const;

  /// Requires: room for it.
  void take(std::span<const LinkId> route, std::int64_t rate);
  void give_back(std::span<const LinkId> route, std::int64_t rate);

  /// The shortest route (fewest links) from rank to rank through nodes that only forward, all with room for `rate`; of
  /// equally short ones the one with the most room, then the lowest link ids.
  /// Cost: O(links) at worst; of ranks that are near each other what is around them, whatever hangs on the switch where
  /// they meet.
  [[nodiscard]] std::optional<Path> find_route(Rank from, Rank to, std::int64_t rate) const;

  struct Reached {
    Rank rank;
    std::uint32_t links = 0;  ///< Length of the shortest route.
  };
  /// The ranks that have such a route from `from`, nearest first, then by rank. Stops behind `max_links` links.
  [[nodiscard]] std::vector<Reached> reach(Rank from, std::int64_t rate, std::uint32_t max_links) const;

 private:
  struct Visit {
    std::uint32_t epoch = 0;
    std::uint32_t level = 0;
    std::int64_t width = 0;
    LinkId entered_by;
  };

  /// Breadth first; `visit_rank(rank, level)` says whether to stop.
  template <class VisitRank>
  void search(Rank from, std::int64_t rate, std::uint32_t max_links, VisitRank visit_rank) const;
  void enter(NodeId node, LinkId link, std::uint32_t level, std::int64_t width) const;
  /// What a search from both ends goes on with; costs are the links that its next step looks at.
  struct Front {
    std::vector<NodeId> nodes;
    std::uint32_t level = 0;
    std::size_t cost = 0;
  };
  void step_ahead(Rank from, Rank to, std::int64_t rate, Front& ahead, std::optional<std::uint32_t> length) const;
  void step_back(Rank from, Rank to, std::int64_t rate, Front& back) const;
  [[nodiscard]] std::optional<std::uint32_t> find_length(Rank from, Rank to, std::int64_t rate, Front& ahead) const;
  [[nodiscard]] std::int64_t node_room(NodeId node) const { return node_room_[node.index()]; }
  void charge(std::span<const LinkId> route, std::int64_t rate);

  const Topology& topology_;
  std::vector<std::int64_t> link_room_;
  std::vector<std::int64_t> node_room_;
  mutable std::vector<Visit> visits_;
  mutable std::vector<Visit> back_visits_;  ///< From the other end: levels alone.
  mutable std::vector<NodeId> level_nodes_, next_nodes_;
  mutable std::uint32_t epoch_ = 0;
};

}  // namespace espalier::planners
