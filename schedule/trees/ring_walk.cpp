#include "schedule/trees/ring_walk.h"

#include <numeric>
#include <string>

namespace espalier {
namespace {

tl::unexpected<Error> bad_hop(const RingWalk& walk, std::size_t place, const std::string& why,
                              const Topology& topology) {
  return fail(ErrorCode::invalid_input,
              "the hop from " + topology.rank_name(walk.order[place]) + " (place " + std::to_string(place) + ") " + why,
              "give the links from each rank of the order to the next");
}

Result<void> check_order(const RingWalk& walk, const Topology& topology) {
  std::vector<bool> seen(topology.rank_count(), false);
  for (const Rank rank : walk.order) {
    if (rank.index() >= seen.size() || seen[rank.index()]) {
      return fail(ErrorCode::invalid_input, "the ring's order names a rank twice or one that does not exist",
                  "name every rank of the topology once");
    }
    seen[rank.index()] = true;
  }
  if (walk.order.size() == seen.size() && walk.hops.size() == seen.size()) return {};
  return fail(ErrorCode::invalid_input,
              "a ring of " + std::to_string(walk.order.size()) + " ranks and " + std::to_string(walk.hops.size()) +
                  " hops on " + std::to_string(seen.size()) + " ranks",
              "name every rank of the topology once, and a hop for each");
}

}  // namespace

Schedule make_outline(std::span<const RingWalk> walks, const Topology& topology) {
  const RingWalk& first = walks.front();
  Schedule outline(first.collective, topology.name(), "ring");
  std::int64_t divisor = 0;
  for (const RingWalk& walk : walks) divisor = std::gcd(divisor, walk.weight);
  const bool sharded = slices_have_rank(first.collective.kind);
  for (std::size_t i = 0; i < first.order.size(); ++i) {
    for (const RingWalk& walk : walks) {
      outline.slices.push_back({outline.units, walk.weight / divisor, sharded ? Rank(i) : Rank(), {}});
      outline.units += walk.weight / divisor;
    }
  }
  for (std::size_t ring = 0; ring < walks.size(); ++ring) {
    const RingWalk& walk = walks[ring];
    const Action action = walk.first_copying_step() > 0 ? Action::reduce : Action::copy;
    for (std::size_t r = 0; r < walk.order.size(); ++r) {
      const RouteId route = outline.add_route(walk.order[r], walk.order[(r + 1) % walk.order.size()], walk.hops[r]);
      outline.add_transfer(route, SliceId(walks.size() * walk.order[r].index() + ring), 1, action, ChannelId(ring));
    }
  }
  return outline;
}

std::uint64_t RingWalk::steps() const {
  if (order.empty()) return 0;
  const std::uint64_t once = order.size() - 1;
  return collective.kind == CollectiveKind::all_reduce ? 2 * once : once;
}

std::uint64_t RingWalk::first_copying_step() const {
  if (collective.kind == CollectiveKind::all_gather) return 0;
  return collective.kind == CollectiveKind::all_reduce ? steps() / 2 : steps();
}

Result<void> check_ring_walk(const RingWalk& walk, const Topology& topology) {
  const CollectiveKind kind = walk.collective.kind;
  const bool walks = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
                     kind == CollectiveKind::all_gather;
  if (!walks || !walk.collective.shares.empty()) {
    return fail(ErrorCode::unsupported, "only all_reduce, reduce_scatter and all_gather of equal shards walk a ring",
                "plan and store the schedule");
  }
  if (auto checked = check_order(walk, topology); !checked) return checked;
  std::vector<std::size_t> visitor(topology.node_count(), walk.order.size());
  for (std::size_t place = 0; place < walk.order.size(); ++place) {
    const NodeId end = topology.node_of(walk.order[(place + 1) % walk.order.size()]);
    NodeId at = topology.node_of(walk.order[place]);
    visitor[at.index()] = place;
    for (const LinkId id : walk.hops[place]) {
      if (id.index() >= topology.link_count() || topology.link(id).tail != at) {
        return bad_hop(walk, place, "is not a path", topology);
      }
      if (at != topology.node_of(walk.order[place]) && !topology.rank_of(at).is_none()) {
        return bad_hop(walk, place, "passes another rank", topology);
      }
      at = topology.link(id).head;
      if (visitor[at.index()] == place) return bad_hop(walk, place, "passes a node twice", topology);
      visitor[at.index()] = place;
    }
    if (at != end || walk.hops[place].empty()) return bad_hop(walk, place, "does not lead to the next", topology);
  }
  return {};
}

}  // namespace espalier
