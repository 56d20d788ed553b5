#include "planners/ring/ring_walks.h"

#include <algorithm>
#include <utility>

#include "planners/ring/ring_forest.h"
#include "schedule/trees/strands.h"
#include "topology/bundles.h"

namespace espalier::planners {

namespace {

/// A ring of the bundled network on its strands: a walk for each of the pieces that deal_strands cuts it into. False
/// where these are more than walks are worth.
bool deal_ring(const Ring& ring, const Collective& collective, const StrandCuts& strands,
               std::vector<RingWalk>& walks) {
  constexpr std::size_t max_pieces = 64;
  std::vector<LinkId> all;
  for (const Path& hop : ring.hops) all.insert(all.end(), hop.begin(), hop.end());
  std::vector<std::int64_t> ends = strands.cuts(all);
  if (ends.size() >= max_pieces) return false;
  ends.push_back(strands.whole());
  std::int64_t begin = 0;
  for (std::uint32_t piece = 0; piece < ends.size(); ++piece) {
    RingWalk walk{
        collective, ring.order, {}, ring.rate * (ends[piece] - begin), piece, static_cast<std::uint32_t>(ends.size())};
    for (const Path& hop : ring.hops) walk.hops.push_back(strands.at(hop, begin));
    walks.push_back(std::move(walk));
    begin = ends[piece];
  }
  return true;
}

/// The most that the rates of rings can be multiplied by, for all shards of all of them together.
std::int64_t largest_whole(const RingSet& set, std::size_t ranks) {
  __int128 all = 0;
  for (const Ring& ring : set.rings) all += __int128{ring.rate} * static_cast<std::int64_t>(ranks);
  const __int128 largest = std::min<__int128>(StrandCuts::largest_whole, max_units / std::max<__int128>(all, 1));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(largest));
}

}  // namespace

Result<WalkedRings> plan_ring_walks(const Topology& topology, const Collective& collective) {
  if (const Rank rank = topology.first_not_relaying(); !rank.is_none() && topology.rank_count() > 2) {
    return fail(ErrorCode::unsupported,
                "every ring passes through " + topology.rank_name(rank) + ", which must not relay",
                "use packing, lp or flat");
  }
  const Bundles bundles(topology);
  const RingSet set = find_rings(bundles.any() ? bundled(topology, bundles) : topology);
  if (set.rings.empty()) {
    return fail(ErrorCode::unsupported, "there is no ring through all ranks of " + topology.name(),
                "try -a tree or -a packing");
  }
  const StrandCuts strands(topology, bundles, largest_whole(set, topology.rank_count()));
  std::vector<RingWalk> walks;
  for (const Ring& ring : set.rings) {
    if (!deal_ring(ring, collective, strands, walks)) {
      return fail(ErrorCode::unsupported, "the parallel links of " + topology.name() + " are too unlike to walk rings",
                  "plan and store the schedule");
    }
  }
  for (const RingWalk& walk : walks) {
    if (auto checked = check_ring_walk(walk, topology); !checked) return tl::unexpected(checked.error());
  }
  ChunkModel chunks = ChunkModel::of_rings(walks, topology);
  return WalkedRings{std::move(walks), chunks, deals_shards(set, collective)};
}

}  // namespace espalier::planners
