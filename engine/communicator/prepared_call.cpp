#include "engine/communicator/prepared_call.h"

#include "base/fnv.h"

namespace espalier::engine {

std::uint64_t hash_of(const Schedule& schedule) {
  Fnv1a hash;
  hash.add_number(static_cast<std::uint64_t>(schedule.collective.kind));
  hash.add_number(schedule.collective.rank_count);
  hash.add_number(schedule.collective.root.value());
  hash.add_number(static_cast<std::uint64_t>(schedule.units));
  for (const std::int64_t share : schedule.collective.shares) hash.add_number(static_cast<std::uint64_t>(share));
  for (const Slice& slice : schedule.slices) {
    hash.add_number(static_cast<std::uint64_t>(slice.length));
    hash.add_number(std::uint64_t{slice.rank.value()} << 32U | slice.to.value());
  }
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(static_cast<std::uint32_t>(i)));
    hash.add_number(std::uint64_t{route.src.value()} << 32U | route.dst.value());
    hash.add_number(route.links.size());
    for (const LinkId link : route.links) hash.add_number(link.value());
  }
  for (const Transfer& transfer : schedule.transfers) {
    hash.add_number(std::uint64_t{transfer.first_slice.value()} << 32U | transfer.slice_count);
    hash.add_number(std::uint64_t{transfer.route.value()} << 32U | std::uint64_t{transfer.channel_value} << 2U |
                    static_cast<std::uint64_t>(transfer.action()));
  }
  return hash.value();
}

}  // namespace espalier::engine
