#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"
#include "planners/classic/classic.h"
#include "planners/logical_graph.h"

namespace espalier {

namespace {

constexpr std::size_t most_transfers = std::size_t{1} << 27U;
constexpr Bytes large_message{1 << 20};  ///< Routes are chosen for messages whose bandwidth counts.

/// One block's way: its hops, whose last one ends at the block's destination.
using Way = std::vector<const Hop*>;

/// Finds ways so that the links' loads, in time, have a small sum of squares.
class BlockRouter {
 public:
  explicit BlockRouter(const LogicalGraph& graph) : graph_(graph), loads_(graph.topology().link_count(), 0) {
    for (const Link& link : graph.topology().links()) {
      seconds_per_byte_.push_back(1.0 / static_cast<double>(link.bandwidth().bytes_per_second));
    }
  }

  void charge(const Way& way, int blocks) {
    for (const Hop* hop : way) {
      for (const LinkId link : hop->links) loads_[link.index()] += blocks;
    }
  }

  /// The cheapest way by any number of relays: each link costs what one more block adds to its squared time.
  [[nodiscard]] Way find_any(Rank from, Rank to) {
    const std::size_t n = graph_.rank_count();
    std::vector<double> cost(n, std::numeric_limits<double>::infinity());
    std::vector<Rank> before(n);
    std::vector<const Hop*> entered(n, nullptr);
    std::vector<bool> settled(n, false);
    cost[from.index()] = 0;
    while (!settled[to.index()]) {
      Rank nearest;
      for (std::size_t i = 0; i < n; ++i) {
        if (!settled[i] && (nearest.is_none() || cost[i] < cost[nearest.index()])) nearest = Rank(i);
      }
      settled[nearest.index()] = true;
      for (const Hop& hop : graph_.hops(nearest)) {
        const double total = cost[nearest.index()] + price(hop);
        if (total >= cost[hop.to.index()]) continue;
        cost[hop.to.index()] = total;
        before[hop.to.index()] = nearest;
        entered[hop.to.index()] = &hop;
      }
    }
    Way way;
    for (Rank rank = to; rank != from; rank = before[rank.index()]) way.push_back(entered[rank.index()]);
    std::reverse(way.begin(), way.end());
    return way;
  }

  /// A way by the fewest relays, the cheapest hop at each of them.
  [[nodiscard]] Way find_short(Rank from, Rank to, const std::vector<std::uint32_t>& hops_left) const {
    Way way;
    for (Rank rank = from; rank != to; rank = way.back()->to) {
      const Hop* cheapest = nullptr;
      double least = 0;
      const bool last = hops_left[rank.index()] == 1;
      for (const Hop& hop : last ? graph_.hops(rank, to) : graph_.hops(rank)) {
        if (hops_left[hop.to.index()] + 1 != hops_left[rank.index()]) continue;
        const double cost = price(hop);
        if (cheapest != nullptr && cost >= least) continue;
        cheapest = &hop;
        least = cost;
      }
      ESPALIER_CHECK(cheapest != nullptr, "planners are asked only when every rank can be reached");
      way.push_back(cheapest);
    }
    return way;
  }

 private:
  [[nodiscard]] double price(const Hop& hop) const {
    double sum = 0;
    for (const LinkId link : hop.links) {
      const double seconds = seconds_per_byte_[link.index()];
      sum += static_cast<double>(2 * loads_[link.index()] + 1) * seconds * seconds;
    }
    return sum;
  }

  const LogicalGraph& graph_;
  LinkLoads loads_;
  std::vector<double> seconds_per_byte_;
};

struct Block {
  Rank from;
  Rank to;
  SliceId slice;
};

/// The blocks that have to move, by distance in rank numbers: at each distance every rank sends and receives one.
std::vector<Block> moving_blocks(const Collective& collective) {
  const std::size_t n = collective.rank_count;
  const bool ring_only = collective.kind == CollectiveKind::send_recv;
  std::vector<Block> blocks;
  for (std::size_t distance = 1; distance < (ring_only ? std::min<std::size_t>(n, 2) : n); ++distance) {
    for (std::size_t from = 0; from < n; ++from) {
      const std::size_t to = (from + distance) % n;
      blocks.push_back({Rank(from), Rank(to), SliceId(ring_only ? from : from * n + to)});
    }
  }
  return blocks;
}

/// For every rank the number of hops to each other one on the way with the fewest relays, by destination.
std::vector<std::vector<std::uint32_t>> count_hops(const LogicalGraph& turned) {
  const std::size_t n = turned.rank_count();
  std::vector<std::vector<std::uint32_t>> counts(n);
  for (std::size_t to = 0; to < n; ++to) {
    std::vector<std::uint32_t>& count = counts[to];
    count.assign(n, std::numeric_limits<std::uint32_t>::max() - 1);
    count[to] = 0;
    std::vector<Rank> queue{Rank(to)};
    for (std::size_t next = 0; next < queue.size() && queue.size() < n; ++next) {
      for (const Hop& hop : turned.hops(queue[next])) {
        if (count[hop.to.index()] <= count[queue[next].index()] + 1) continue;
        count[hop.to.index()] = count[queue[next].index()] + 1;
        queue.push_back(hop.to);
      }
    }
  }
  return counts;
}

/// Small machines: every block may take any relays, and is routed again twice when all others' ways are known.
std::vector<Way> route_freely(const LogicalGraph& graph, const std::vector<Block>& blocks) {
  constexpr int rounds = 3;
  BlockRouter router(graph);
  std::vector<Way> ways(blocks.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      router.charge(ways[i], -1);
      ways[i] = router.find_any(blocks[i].from, blocks[i].to);
      router.charge(ways[i], 1);
    }
  }
  return ways;
}

std::vector<Way> route_shortest(const LogicalGraph& graph, const std::vector<Block>& blocks) {
  const Topology turned = reversed(graph.topology());
  const std::vector<std::vector<std::uint32_t>> counts = count_hops(LogicalGraph(turned, large_message, 1));
  BlockRouter router(graph);
  std::vector<Way> ways;
  for (const Block& block : blocks) {
    ways.push_back(router.find_short(block.from, block.to, counts[block.to.index()]));
    router.charge(ways.back(), 1);
  }
  return ways;
}

bool few_enough_to_search(const LogicalGraph& graph, std::size_t block_count) {
  constexpr std::size_t most_ranks = 64;
  constexpr std::size_t most_steps = 4'000'000;
  if (graph.rank_count() > most_ranks) return false;
  std::size_t hops = 0;
  for (std::size_t i = 0; i < graph.rank_count(); ++i) hops += graph.hops(Rank(i)).size();
  return hops * block_count <= most_steps;
}

Schedule list_slices(const Topology& topology, const Collective& collective) {
  Schedule schedule(collective, topology.name(), "pairwise");
  schedule.units = collective.part_count();
  const std::size_t n = collective.rank_count;
  for (std::size_t part = 0; part < static_cast<std::size_t>(schedule.units); ++part) {
    const bool ring_only = collective.kind == CollectiveKind::send_recv;
    const Rank from(ring_only ? part : part / n);
    const Rank to((ring_only ? part + 1 : part) % n);
    schedule.slices.push_back({static_cast<std::int64_t>(part), 1, from, to});
  }
  return schedule;
}

}  // namespace

Result<Schedule> plan_pairwise(const Topology& topology, const Collective& collective) {
  if (!slices_have_destination(collective.kind)) {
    return fail(ErrorCode::unsupported, "pairwise does not plan " + std::string(to_string(collective.kind)),
                "use flat, ring, tree or packing");
  }
  const std::uint32_t variants = collective.rank_count <= 64 ? 4 : 1;
  const LogicalGraph graph(topology, large_message, variants);
  const std::vector<Block> blocks = moving_blocks(collective);
  const std::vector<Way> ways =
      few_enough_to_search(graph, blocks.size()) ? route_freely(graph, blocks) : route_shortest(graph, blocks);
  std::size_t longest = 0;
  std::size_t transfers = 0;
  for (const Way& way : ways) {
    longest = std::max(longest, way.size());
    transfers += way.size();
  }
  if (transfers > most_transfers) {
    return fail(ErrorCode::too_large, "pairwise would need " + std::to_string(transfers) + " transfers",
                "plan for fewer ranks");
  }
  Schedule schedule = list_slices(topology, collective);
  for (std::size_t step = 0; step < longest; ++step) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (ways[i].size() <= step) continue;
      const Rank from = step == 0 ? blocks[i].from : ways[i][step - 1]->to;
      const RouteId route = schedule.add_route(from, ways[i][step]->to, ways[i][step]->links);
      schedule.add_transfer(route, blocks[i].slice, 1, Action::copy, ChannelId(0));
    }
  }
  return schedule;
}

}  // namespace espalier
