#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"
#include "planners/classic/classic.h"
#include "planners/graph/logical_graph.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_transfers = std::size_t{1} << 27U;
constexpr std::uint32_t max_variants = 4;
constexpr Bytes large_message{1 << 20};  ///< Routes are chosen for messages whose bandwidth counts.

/// A piece's path: its hops, whose last one ends at the block's destination.
using HopPath = std::vector<const Hop*>;

/// Finds paths so that the links' loads, in time, have a small sum of squares. Loads count
/// pieces, each by its share of the traffic where blocks are unequal.
class BlockRouter {
 public:
  explicit BlockRouter(const LogicalGraph& graph) : graph_(graph), loads_(graph.topology().link_count(), 0) {
    for (const Link& link : graph.topology().links()) {
      seconds_per_byte_.push_back(1.0 / static_cast<double>(link.bandwidth().bytes_per_second));
    }
  }

  void charge(const HopPath& path, std::int64_t load) {
    for (const Hop* hop : path) {
      for (const LinkId link : hop->links) loads_[link.index()] += load;
    }
  }

  /// The cheapest path by any number of relays: each link costs what one more such piece adds to its squared time.
  [[nodiscard]] HopPath find_any(Rank from, Rank to, std::int64_t load) {
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
      if (nearest != from && !graph_.topology().may_relay(nearest)) continue;
      for (const Hop& hop : graph_.hops(nearest)) {
        const double total = cost[nearest.index()] + price(hop, load);
        if (total >= cost[hop.to.index()]) continue;
        cost[hop.to.index()] = total;
        before[hop.to.index()] = nearest;
        entered[hop.to.index()] = &hop;
      }
    }
    HopPath path;
    for (Rank rank = to; rank != from; rank = before[rank.index()]) path.push_back(entered[rank.index()]);
    std::reverse(path.begin(), path.end());
    return path;
  }

  /// A path by the fewest relays, the cheapest hop at each of them.
  [[nodiscard]] HopPath find_short(Rank from, Rank to, std::int64_t load,
                                   const std::vector<std::uint32_t>& hops_left) const {
    HopPath path;
    for (Rank rank = from; rank != to; rank = path.back()->to) {
      const Hop* cheapest = nullptr;
      double least = 0;
      const bool last = hops_left[rank.index()] == 1;
      for (const Hop& hop : last ? graph_.hops(rank, to) : graph_.hops(rank)) {
        if (hops_left[hop.to.index()] + 1 != hops_left[rank.index()]) continue;
        if (hop.to != to && !graph_.topology().may_relay(hop.to)) continue;
        const double cost = price(hop, load);
        if (cheapest != nullptr && cost >= least) continue;
        cheapest = &hop;
        least = cost;
      }
      ESPALIER_CHECK(cheapest != nullptr, "planners are asked only when every rank can be reached");
      path.push_back(cheapest);
    }
    return path;
  }

 private:
  [[nodiscard]] double price(const Hop& hop, std::int64_t load) const {
    double sum = 0;
    for (const LinkId link : hop.links) {
      const double seconds = seconds_per_byte_[link.index()];
      sum += static_cast<double>(2 * loads_[link.index()] + load) * seconds * seconds;
    }
    return sum;
  }

  const LogicalGraph& graph_;
  LinkLoads loads_;
  std::vector<double> seconds_per_byte_;
};

/// What one rank sends to another, and the paths it takes: pieces of equal size, most of them on the same path as
/// others.
struct Block {
  Rank from;
  Rank to;
  std::int64_t share = 1;      ///< Of the traffic.
  std::vector<HopPath> paths;  ///< By piece.
};

/// The blocks that have to move, by distance in rank numbers: at each distance every rank sends and receives one.
std::vector<Block> moving_blocks(const Collective& collective, std::size_t pieces) {
  const std::size_t n = collective.rank_count;
  const bool ring_only = collective.kind == CollectiveKind::send_recv;
  std::vector<Block> blocks;
  for (std::size_t distance = 1; distance < (ring_only ? std::min<std::size_t>(n, 2) : n); ++distance) {
    for (std::size_t from = 0; from < n; ++from) {
      const Rank to((from + distance) % n);
      const std::int64_t share = ring_only ? 1 : collective.block(Rank(from), to);
      if (share > 0) blocks.push_back({Rank(from), to, share, std::vector<HopPath>(pieces)});
    }
  }
  return blocks;
}

/// For every rank the number of hops to each other one on the path with the fewest relays, by destination.
std::vector<std::vector<std::uint32_t>> count_hops(const LogicalGraph& turned) {
  const std::size_t n = turned.rank_count();
  std::vector<std::vector<std::uint32_t>> counts(n);
  for (std::size_t to = 0; to < n; ++to) {
    std::vector<std::uint32_t>& count = counts[to];
    count.assign(n, std::numeric_limits<std::uint32_t>::max() - 1);
    count[to] = 0;
    std::vector<Rank> queue{Rank(to)};
    for (std::size_t next = 0; next < queue.size() && queue.size() < n; ++next) {
      if (queue[next] != Rank(to) && !turned.topology().may_relay(queue[next])) continue;
      for (const Hop& hop : turned.hops(queue[next])) {
        if (count[hop.to.index()] <= count[queue[next].index()] + 1) continue;
        count[hop.to.index()] = count[queue[next].index()] + 1;
        queue.push_back(hop.to);
      }
    }
  }
  return counts;
}

/// Small machines: every piece may take any relays, and is routed again twice when all others' paths are known.
void route_freely(const LogicalGraph& graph, std::vector<Block>& blocks) {
  constexpr int rounds = 3;
  BlockRouter router(graph);
  for (int round = 0; round < rounds; ++round) {
    for (Block& block : blocks) {
      for (HopPath& path : block.paths) {
        router.charge(path, -block.share);
        path = router.find_any(block.from, block.to, block.share);
        router.charge(path, block.share);
      }
    }
  }
}

void route_shortest(const PlanningProblem& problem, const LogicalGraph& graph, std::vector<Block>& blocks) {
  const auto counts = count_hops(problem.logical_graph(Direction::reversed, large_message, 1));
  BlockRouter router(graph);
  for (Block& block : blocks) {
    for (HopPath& path : block.paths) {
      path = router.find_short(block.from, block.to, block.share, counts[block.to.index()]);
      router.charge(path, block.share);
    }
  }
}

/// Into how many pieces each block is cut: as many as can be routed in a fixed number of steps; none where that is too
/// much work for whole blocks already.
std::size_t count_pieces(const LogicalGraph& graph, std::size_t block_count) {
  constexpr std::size_t max_ranks = 64;
  constexpr std::size_t max_steps = 2'000'000;
  constexpr std::size_t max_pieces = 16;
  if (graph.rank_count() > max_ranks) return 0;
  std::size_t hops = 0;
  for (std::size_t i = 0; i < graph.rank_count(); ++i) hops += graph.hops(Rank(i)).size();
  return std::min(max_pieces, max_steps / std::max<std::size_t>(1, hops * block_count));
}

/// Pieces on the same path stay together; the slices of all parts, in order, and who moves along which path.
class SliceWriter {
 public:
  SliceWriter(const Topology& topology, const Collective& collective, const LogicalGraph& graph, std::int64_t pieces)
      : graph_(graph), schedule_(collective, topology.name(), "pairwise"), pieces_(pieces) {}

  Schedule write(std::vector<Block>& blocks) {
    for (Block& block : blocks) std::sort(block.paths.begin(), block.paths.end());
    add_slices(blocks);
    std::size_t longest = 0;
    for (const Moving& moving : moving_) longest = std::max(longest, moving.path->size());
    for (std::size_t step = 0; step < longest; ++step) add_transfers(step);
    return std::move(schedule_);
  }

 private:
  struct Moving {
    Rank from;
    const HopPath* path = nullptr;
    SliceId slice;
  };

  void add_slices(const std::vector<Block>& blocks) {
    const std::size_t n = schedule_.collective.rank_count;
    const bool ring_only = schedule_.collective.kind == CollectiveKind::send_recv;
    std::vector<const Block*> block_of(static_cast<std::size_t>(schedule_.collective.part_count()), nullptr);
    for (const Block& block : blocks) {
      block_of[ring_only ? block.from.index() : block.from.index() * n + block.to.index()] = &block;
    }
    std::vector<SliceId> first_slice(block_of.size());
    for (std::size_t part = 0; part < block_of.size(); ++part) {
      const Rank from(ring_only ? part : part / n);
      const Rank to((ring_only ? part + 1 : part) % n);
      first_slice[part] = SliceId(schedule_.slices.size());
      const std::int64_t share = schedule_.collective.share_of_part(static_cast<std::int64_t>(part));
      if (share == 0) continue;
      if (block_of[part] == nullptr) {
        add_slice(pieces_ * share, from, to);
        continue;
      }
      const std::vector<HopPath>& paths = block_of[part]->paths;
      for (auto path = paths.begin(); path != paths.end();) {
        const auto end = std::upper_bound(path, paths.end(), *path);
        add_slice((end - path) * share, from, to);
        path = end;
      }
    }
    list_moving(blocks, first_slice, ring_only);
  }

  void add_slice(std::int64_t length, Rank from, Rank to) {
    schedule_.slices.push_back({schedule_.units, length, from, to});
    schedule_.units += length;
  }

  /// In the blocks' order, which is the order of the pairwise exchange.
  void list_moving(const std::vector<Block>& blocks, const std::vector<SliceId>& first_slice, bool ring_only) {
    const std::size_t n = schedule_.collective.rank_count;
    for (const Block& block : blocks) {
      std::size_t slice =
          first_slice[ring_only ? block.from.index() : block.from.index() * n + block.to.index()].index();
      for (auto path = block.paths.begin(); path != block.paths.end(); ++slice) {
        moving_.push_back({block.from, &*path, SliceId(slice)});
        path = std::upper_bound(path, block.paths.end(), *path);
      }
    }
  }

  /// Routes between the same ranks, and steps, have channels of their own: what comes later on one would wait.
  void add_transfers(std::size_t step) {
    for (const Moving& moving : moving_) {
      if (moving.path->size() <= step) continue;
      const Hop& hop = *(*moving.path)[step];
      const Rank from = step == 0 ? moving.from : (*moving.path)[step - 1]->to;
      const std::span<const Hop> alike = graph_.hops(from, hop.to);
      const auto variant = static_cast<std::size_t>(&hop - alike.data());
      schedule_.add_transfer(schedule_.add_route(from, hop.to, hop.links), moving.slice, 1, Action::copy,
                             ChannelId(step * max_variants + variant));
    }
  }

  const LogicalGraph& graph_;
  Schedule schedule_;
  std::int64_t pieces_;
  std::vector<Moving> moving_;
};

}  // namespace

Result<Schedule> plan_pairwise(const PlanningProblem& problem, const Collective& collective) {
  if (!slices_have_destination(collective.kind)) {
    return fail(ErrorCode::unsupported, "pairwise does not plan " + std::string(to_string(collective.kind)),
                "use flat, ring, tree or packing");
  }
  const Topology& topology = problem.topology();
  const std::uint32_t variants = collective.rank_count <= 64 ? max_variants : 1;
  const LogicalGraph& graph = problem.logical_graph(Direction::forward, large_message, variants);
  const std::size_t pieces = count_pieces(graph, moving_blocks(collective, 0).size());
  std::vector<Block> blocks = moving_blocks(collective, std::max<std::size_t>(pieces, 1));
  if (pieces > 0) {
    route_freely(graph, blocks);
  } else {
    route_shortest(problem, graph, blocks);
  }
  std::size_t transfers = 0;
  for (const Block& block : blocks) {
    for (const HopPath& path : block.paths) transfers += path.size();
  }
  if (transfers > max_transfers) {
    return fail(ErrorCode::too_large, "pairwise would need " + std::to_string(transfers) + " transfers",
                "plan for fewer ranks");
  }
  const auto pieces_of_a_block = static_cast<std::int64_t>(std::max<std::size_t>(pieces, 1));
  return SliceWriter(topology, collective, graph, pieces_of_a_block).write(blocks);
}

}  // namespace espalier::planners
