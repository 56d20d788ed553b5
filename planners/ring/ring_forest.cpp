#include "planners/ring/ring_forest.h"

#include <algorithm>
#include <numeric>

namespace espalier::planners {

namespace {

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

/// As ranks take turns, the shards of so many go round all rings that any plan has.
constexpr std::size_t max_compared_shards = 512;

constexpr std::int64_t max_weight = std::int64_t{1} << 44;

class RingForest {
 public:
  RingForest(const std::vector<Ring>& rings, const Collective& collective) : rings_(rings), collective_(collective) {
    std::int64_t divisor = 0;
    for (const Ring& ring : rings) divisor = std::gcd(divisor, ring.rate);
    std::int64_t sum = 0;
    for (const Ring& ring : rings) sum += ring.rate / divisor;
    // Schedules count units in 62 bits, every rank having as many; weights too fine for that lose their last bits.
    for (; sum > max_weight; sum /= 2) divisor *= 2;
    for (const Ring& ring : rings) weights_.push_back(std::max<std::int64_t>(1, ring.rate / divisor));
    const std::size_t n = collective.rank_count;
    const bool equal = std::all_of(weights_.begin(), weights_.end(), [](std::int64_t weight) { return weight == 1; });
    deal_ = !has_root(collective.kind) && equal && n >= 8 * rings.size() && n * n * rings.size() > many_transfers;
  }

  [[nodiscard]] bool deals() const { return deal_; }

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

Forest forest_of_rings(const RingSet& set, const Collective& collective) {
  return RingForest(set.rings, collective).make();
}

bool deals_shards(const RingSet& set, const Collective& collective) {
  return RingForest(set.rings, collective).deals();
}

std::uint32_t rings_dealt_to(const Schedule& schedule) {
  const std::size_t n = schedule.collective.rank_count;
  const bool may_be_dealt = !has_root(schedule.collective.kind) && schedule.slices.size() == n && n > 1 &&
                            (schedule.algorithm == "ring" || schedule.algorithm == "nccl/ring");
  if (!may_be_dealt) return 1;
  // By shard and rank: over which route the rank hands the shard on.
  const std::size_t shards = std::min(n, max_compared_shards);
  std::vector<RouteId> next(shards * n);
  for (const Transfer& transfer : schedule.transfers) {
    for (std::size_t i = 0; i < transfer.slice_count; ++i) {
      const std::size_t shard = transfer.first_slice.index() + i;
      if (shard < shards) next[shard * n + schedule.src(transfer).index()] = transfer.route;
    }
  }
  // A shard's path leaves out the hop into the rank that it begins at.
  const auto are_on_one_ring = [&](std::size_t a, std::size_t b) {
    std::size_t differs = 0;
    for (std::size_t rank = 0; rank < n && differs <= 2; ++rank) {
      if (next[a * n + rank] != next[b * n + rank]) ++differs;
    }
    return differs <= 2;
  };
  std::vector<std::size_t> first = {0};  // By ring: the first shard that goes round it.
  for (std::size_t shard = 1; shard < shards; ++shard) {
    if (std::ranges::none_of(first, [&](std::size_t known) { return are_on_one_ring(known, shard); })) {
      first.push_back(shard);
    }
  }
  return static_cast<std::uint32_t>(first.size());
}

}  // namespace espalier::planners
