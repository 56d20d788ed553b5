#include "planners/ring/ring_walks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "schedule/strands.h"
#include "topology/bundles.h"

namespace espalier {

namespace {

/// The rings of the bundled network on its strands: each in the pieces that deal_strands cuts it into.
/// Nothing where pieces are more, or finer, than walks are worth.
std::optional<std::vector<Ring>> deal_rings(const RingSet& set, const Topology& topology, const Bundles& bundles) {
  constexpr std::size_t most_pieces = 64;
  std::int64_t most_rate = 1;
  for (const Ring& ring : set.rings) most_rate = std::max(most_rate, ring.rate);
  const StrandCuts strands(topology, bundles,
                           std::min(StrandCuts::largest_whole, std::numeric_limits<std::int64_t>::max() / most_rate));
  std::vector<Ring> dealt;
  for (const Ring& ring : set.rings) {
    std::vector<LinkId> all;
    for (const Path& hop : ring.hops) all.insert(all.end(), hop.begin(), hop.end());
    std::vector<std::int64_t> ends = strands.cuts(all);
    if (ends.size() >= most_pieces) return std::nullopt;
    ends.push_back(strands.whole());
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      Ring piece{ring.order, {}, ring.rate * (end - begin)};
      for (const Path& hop : ring.hops) piece.hops.push_back(strands.at(hop, begin));
      dealt.push_back(std::move(piece));
      begin = end;
    }
  }
  return dealt;
}

}  // namespace

Result<WalkedRings> plan_ring_walks(const Topology& topology, const Collective& collective) {
  if (const Rank rank = topology.first_not_relaying(); !rank.is_none() && topology.rank_count() > 2) {
    return fail(ErrorCode::unsupported,
                "every ring passes through " + topology.rank_name(rank) + ", which must not relay",
                "use packing, lp or flat");
  }
  const Bundles bundles(topology);
  RingSet set = find_rings(bundles.any() ? bundled(topology, bundles) : topology);
  if (set.rings.empty()) {
    return fail(ErrorCode::unsupported, "there is no ring through all ranks of " + topology.name(),
                "try -a tree or -a packing");
  }
  if (bundles.any()) {
    auto dealt = deal_rings(set, topology, bundles);
    if (!dealt) {
      return fail(ErrorCode::unsupported, "the parallel links of " + topology.name() + " are too unlike to walk rings",
                  "plan and store the schedule");
    }
    set.rings = *std::move(dealt);
  }
  std::vector<RingWalk> walks;
  for (Ring& ring : set.rings) {
    walks.push_back({collective, std::move(ring.order), std::move(ring.hops), ring.rate});
    if (auto checked = check_ring_walk(walks.back(), topology); !checked) return tl::unexpected(checked.error());
  }
  ChunkModel chunks = ChunkModel::of_rings(walks, topology);
  return WalkedRings{std::move(walks), chunks};
}

}  // namespace espalier
