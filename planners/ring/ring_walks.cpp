#include "planners/ring/ring_walks.h"

#include <utility>

namespace espalier {

Result<std::vector<RingWalk>> plan_ring_walks(const Topology& topology, const Collective& collective) {
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
  return walks;
}

}  // namespace espalier
