#include "planners/ring/ring.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "planners/ring/ring_search.h"
#include "schedule/tree_schedule.h"

namespace espalier {

namespace {

constexpr std::size_t small_machine = 16;  ///< Up to here the search is exhaustive within its work limit.

/// The rates of the links, largest first: those at which a ring fills a link.
std::vector<std::int64_t> whole_rates(const Topology& topology) {
  std::vector<std::int64_t> rates;
  for (const Link& link : topology.links()) rates.push_back(link.bandwidth().bytes_per_second);
  std::sort(rates.begin(), rates.end(), std::greater<>());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  constexpr std::size_t most_rates = 12;
  if (rates.size() > most_rates) rates.resize(most_rates);
  return rates;
}

/// For graphs where every cycle must pass some link several times.
std::vector<std::int64_t> shared_rates(const std::vector<std::int64_t>& whole) {
  std::vector<std::int64_t> rates;
  for (const std::int64_t rate : whole) {
    for (std::int64_t share = 2; share <= 8; ++share) rates.push_back(rate / share);
  }
  std::sort(rates.begin(), rates.end(), std::greater<>());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  while (!rates.empty() && rates.back() == 0) rates.pop_back();
  return rates;
}

/// No set of rings can carry more: every ring enters and leaves each rank, and each machine that has several.
std::int64_t rate_limit(const Topology& topology, const RankGroups& groups) {
  const auto sum = [&](std::span<const LinkId> links) {
    return std::accumulate(links.begin(), links.end(), std::int64_t{0}, [&](std::int64_t total, LinkId id) {
      return total + topology.link(id).bandwidth().bytes_per_second;
    });
  };
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    least = std::min({least, sum(topology.out_links(node)), sum(topology.in_links(node))});
  }
  if (!groups.two_levels()) return least;
  std::unordered_map<std::string, std::int64_t> leaving;
  for (const Link& link : topology.links()) {
    const std::string& host = topology.node(link.tail).host;
    if (!host.empty() && topology.node(link.head).host != host) leaving[host] += link.bandwidth().bytes_per_second;
  }
  for (const auto& [host, rate] : leaving) least = std::min(least, rate);
  return least;
}

class RingPlanner {
 public:
  explicit RingPlanner(const Topology& topology)
      : topology_(topology), groups_(group_ranks(topology)), most_(rate_limit(topology, groups_)) {}

  std::vector<Ring> run() {
    const std::vector<std::int64_t> whole = whole_rates(topology_);
    for (const std::vector<std::int64_t>& rates : {whole, shared_rates(whole)}) {
      if (groups_.two_levels()) try_rates(rates, &RingPlanner::through_hosts);
      if (best_.empty() || is_small()) try_rates(rates, &RingPlanner::through_ranks);
      if (!best_.empty()) break;
    }
    return std::move(best_);
  }

 private:
  /// Finds rings of one rate in what is left, the most that its strategy finds.
  using Strategy = std::vector<Ring> (RingPlanner::*)(Residual&, std::int64_t rate) const;

  [[nodiscard]] bool is_small() const { return topology_.rank_count() <= small_machine; }
  [[nodiscard]] WorkLimit steps_per_rank(std::int64_t steps) const {
    return {steps * static_cast<std::int64_t>(topology_.rank_count())};
  }

  void try_rates(const std::vector<std::int64_t>& rates, Strategy strategy) {
    for (const std::int64_t rate : rates) {
      if (total_rate(best_) >= most_) return;
      Residual residual(topology_);
      std::vector<Ring> rings = (this->*strategy)(residual, rate);
      if (rings.empty()) continue;
      for (const Ring& ring : rings) take(residual, ring, ring.rate);
      add_more(residual, rates, strategy, rings);
      widen(residual, rings);
      if (total_rate(rings) > total_rate(best_)) best_ = std::move(rings);
    }
  }

  std::vector<Ring> through_hosts(Residual& residual, std::int64_t rate) const {
    WorkLimit work = steps_per_rank(512);
    return cross_hosts(residual, groups_, rate, work);
  }

  std::vector<Ring> through_ranks(Residual& residual, std::int64_t rate) const {
    WorkLimit work = steps_per_rank(is_small() ? 256 : 64);
    if (topology_.rank_count() > 2) {
      std::vector<Ring> rings = search_rings(residual, rate, true, work);
      if (!is_small() && rings.size() < most_rings(residual, rate, true)) {
        work = steps_per_rank(1 << 14);
        std::vector<Ring> rotated = rotate_rings(residual, rate, work);
        if (rotated.size() > rings.size()) rings = std::move(rotated);
      }
      if (!rings.empty()) return rings;
      work = steps_per_rank(is_small() ? 256 : 64);
    }
    return search_rings(residual, rate, false, work);
  }

  /// Fills what the first rings left with slower ones, as long as each adds a share worth a channel of its own.
  void add_more(Residual& residual, const std::vector<std::int64_t>& rates, Strategy strategy,
                std::vector<Ring>& rings) const {
    constexpr std::int64_t least_share = 32;
    for (const std::int64_t rate : rates) {
      if (total_rate(rings) >= most_) return;
      if (rate > rings.front().rate || rate * least_share < total_rate(rings)) continue;
      for (Ring& ring : (this->*strategy)(residual, rate)) {
        take(residual, ring, ring.rate);
        rings.push_back(std::move(ring));
      }
    }
  }

  /// Gives every ring, in turn, what its links still have.
  static void widen(Residual& residual, std::vector<Ring>& rings) {
    for (Ring& ring : rings) {
      const std::int64_t extra = spare(residual, ring);
      if (extra == 0) continue;
      take(residual, ring, extra);
      ring.rate += extra;
    }
  }

  /// How much faster a ring could be, when it may pass a link or backplane several times.
  static std::int64_t spare(const Residual& residual, const Ring& ring) {
    std::unordered_map<std::uint32_t, std::int64_t> passes;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t most_passes = 1;
    for (const Path& hop : ring.hops) {
      least = std::min(least, residual.room(hop));
      for (const LinkId link : hop) most_passes = std::max(most_passes, ++passes[link.value()]);
      for (const LinkId link : hop) {
        const Topology& topology = residual.topology();
        if (topology.node(topology.link(link).head).bandwidth.bytes_per_second != 0) return 0;
      }
    }
    return least / most_passes;
  }

  static void take(Residual& residual, const Ring& ring, std::int64_t rate) {
    for (const Path& hop : ring.hops) residual.take(hop, rate);
  }

  const Topology& topology_;
  RankGroups groups_;
  std::int64_t most_;
  std::vector<Ring> best_;
};

/// The path of a ring from `root` round to the rank before it (out), or round to `root` from the rank behind it (in).
Arborescence path_tree(const Ring& ring, std::size_t root_place, bool out) {
  const std::size_t n = ring.order.size();
  Arborescence tree;
  tree.root = ring.order[root_place];
  tree.edges.reserve(n - 1);
  for (std::size_t i = 1; i < n; ++i) {
    const std::size_t parent = out ? (root_place + i - 1) % n : (root_place + n - i + 1) % n;
    const std::size_t child = out ? (root_place + i) % n : (root_place + n - i) % n;
    tree.edges.push_back({ring.order[parent], ring.order[child], ring.hops[out ? parent : child]});
  }
  return tree;
}

/// Past this many transfers each rank's shard goes round one ring only, the ranks taking turns, instead of in parts
/// round all of them: the same load within one part in the number of ranks, with fewer transfers.
constexpr std::size_t many_transfers = std::size_t{1} << 21U;

class RingForest {
 public:
  RingForest(const std::vector<Ring>& rings, const Collective& collective) : rings_(rings), collective_(collective) {
    std::int64_t divisor = 0;
    for (const Ring& ring : rings) divisor = std::gcd(divisor, ring.rate);
    for (const Ring& ring : rings) weights_.push_back(ring.rate / divisor);
    const std::size_t n = collective.rank_count;
    const bool equal = std::all_of(weights_.begin(), weights_.end(), [](std::int64_t weight) { return weight == 1; });
    deal_ = !has_root(collective.kind) && equal && n >= 8 * rings.size() && n * n * rings.size() > many_transfers;
  }

  Forest make() {
    Forest forest;
    const CollectiveKind kind = collective_.kind;
    if (reduces(kind)) add_trees(forest.in_trees, false);
    if (!reduces(kind) || kind == CollectiveKind::all_reduce) add_trees(forest.out_trees, true);
    return forest;
  }

 private:
  void add_trees(std::vector<Arborescence>& trees, bool out) const {
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
      for (std::size_t place = 0; place < rings_[ring].order.size(); ++place) {
        const Rank root = rings_[ring].order[place];
        if (!collective_.root.is_none() && root != collective_.root) continue;
        if (deal_ && root.index() % rings_.size() != ring) continue;
        trees.push_back(path_tree(rings_[ring], place, out));
        trees.back().weight = deal_ ? 1 : weights_[ring];
      }
    }
  }

  const std::vector<Ring>& rings_;
  const Collective& collective_;
  std::vector<std::int64_t> weights_;
  bool deal_ = false;
};

}  // namespace

std::int64_t total_rate(const std::vector<Ring>& rings) {
  return std::accumulate(rings.begin(), rings.end(), std::int64_t{0},
                         [](std::int64_t total, const Ring& ring) { return total + ring.rate; });
}

std::vector<Ring> find_rings(const Topology& topology) {
  if (topology.rank_count() < 2) return {};
  return RingPlanner(topology).run();
}

Result<Schedule> plan_ring(const Topology& topology, const Collective& collective) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: break;
    default:
      return fail(ErrorCode::unsupported,
                  "ring does not plan " + std::string(to_string(collective.kind)) +
                      ": its data would pass every rank on the way to one",
                  "use pairwise for all_to_all and send_recv, flat for gather and scatter");
  }
  const std::vector<Ring> rings = find_rings(topology);
  if (rings.empty() && collective.rank_count > 1) {
    return fail(ErrorCode::unsupported,
                "ring finds no cycle through all " + std::to_string(collective.rank_count) + " ranks of " +
                    topology.name() + " along its links",
                "use packing or tree, which work on every connected graph");
  }
  return schedule_from_trees(collective, topology, "ring", RingForest(rings, collective).make());
}

}  // namespace espalier
