#pragma once

// Tested by: tests/property/planners/groups_test.cpp

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "schedule/trees/tree_schedule.h"
#include "topology/routes.h"
#include "topology/topology.h"

namespace espalier::planners {

/// One message from rank to rank through nodes that only forward.
struct Hop {
  Rank to;
  std::vector<LinkId> links;
  std::int64_t cost = 0;  ///< Picoseconds for a message of the graph's reference size.
};

/// The direct routes from one rank to another; none where there are none. For networks on which searching the routes
/// from every rank to all others takes too long.
using PairRoutes = std::function<std::vector<std::vector<LinkId>>(Rank from, Rank to)>;

/// The ranks and the direct routes between them. What has no direct route is relayed by ranks, hop after hop.
/// Hops of a rank are found when they are first asked for. Several threads may ask at once.
class LogicalGraph {
 public:
  /// Costs are those of messages of `size` bytes; up to `variants` different routes from rank to rank are kept, for
  /// planners that spread load over parallel links and NICs.
  LogicalGraph(const Topology& topology, Bytes size, std::uint32_t variants);
  /// The routes of pairs are these; hops of a rank to all others are searched as above.
  LogicalGraph(const Topology& topology, Bytes size, PairRoutes routes);

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] std::size_t rank_count() const { return topology_->rank_count(); }
  /// All hops from a rank, by destination. Cost: one route search at the first call, and reading it per variant.
  [[nodiscard]] std::span<const Hop> hops(Rank from) const;
  /// Where in `hops(from)` the cheapest hop is, the next one, and so on; of equal ones the earlier.
  [[nodiscard]] std::span<const std::uint32_t> cheapest_hops(Rank from) const;
  /// The hops from rank to rank; empty when they have no direct route.
  [[nodiscard]] std::span<const Hop> hops(Rank from, Rank to) const;
  /// No hop costs less.
  [[nodiscard]] std::int64_t min_cost() const { return min_cost_; }

 private:
  const Topology* topology_;
  Bytes size_;
  std::uint32_t variants_;
  std::int64_t min_cost_ = 0;
  struct RankHops {
    std::once_flag search;
    std::vector<Hop> hops;
    std::once_flag sort;
    std::vector<std::uint32_t> cheapest;
  };
  void search(Rank from, RankHops& found) const;
  /// Searched at the first call.
  [[nodiscard]] const RankHops& hops_from(Rank from) const;

  std::unique_ptr<RankHops[]> by_rank_;
  PairRoutes routes_;
  struct PairHops {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::vector<Hop>> found;
  };
  [[nodiscard]] std::span<const Hop> hops_of_pair(Rank from, Rank to) const;

  std::unique_ptr<PairHops> by_pair_;
};

/// The same network with every link turned round; link ids stay.
Topology reversed(const Topology& topology);

/// How busy each link is so far, in any unit that all users share.
using LinkLoads = std::vector<std::int64_t>;

/// A tree of cheapest paths from `root` to every rank; among equally cheap parents and routes the least loaded ones.
/// With `reverse`, links are listed from child to parent: for in-trees, which are found on the reversed network. Every
/// edge adds `weight` to the load of its links.
/// Requires: every rank can be reached. Cost: O(ranks x hops) at worst, O(hops of the root) where no relay is as cheap.
Arborescence cheapest_tree(const LogicalGraph& graph, Rank root, bool reverse, std::int64_t weight, LinkLoads& loads);

}  // namespace espalier::planners
