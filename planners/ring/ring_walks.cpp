#include "planners/ring/ring_walks.h"

#include <utility>

namespace espalier {

Result<WalkedRings> plan_ring_walks(const Topology& topology, const Collective& collective) {
  if (const Rank rank = topology.first_not_relaying(); !rank.is_none() && topology.rank_count() > 2) {
    return fail(ErrorCode::unsupported,
                "every ring passes through " + topology.rank_name(rank) + ", which must not relay",
                "use packing, lp or flat");
  }
  RingSet set = find_rings(topology);
  if (set.rings.empty()) {
    return fail(ErrorCode::unsupported, "there is no ring through all ranks of " + topology.name(),
                "try -a tree or -a packing");
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
