#include "planners/packing/input_exchange.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::planners {

Schedule exchange_inputs(const Schedule& gathering) {
  const std::uint32_t ranks = gathering.collective.rank_count;
  Schedule made({CollectiveKind::all_reduce, ranks, Rank()}, gathering.topology, gathering.algorithm);
  made.units = gathering.units / ranks;
  // Shards are cut at different places: all of them are places to cut the one buffer.
  const auto offset_in_shard = [&](const Slice& slice) { return slice.offset % made.units; };
  std::vector<std::int64_t> cuts = {made.units};
  for (const Slice& slice : gathering.slices) cuts.push_back(offset_in_shard(slice));
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    made.slices.push_back({cuts[i], cuts[i + 1] - cuts[i], Rank(), Rank()});
  }
  const auto place_of = [&](std::int64_t offset) {
    return static_cast<std::size_t>(std::ranges::lower_bound(cuts, offset) - cuts.begin());
  };
  for (const Transfer& transfer : gathering.transfers) {
    const Slice& first = gathering.slices[transfer.first_slice.index()];
    const Slice& last = gathering.slices[transfer.first_slice.index() + transfer.slice_count - 1];
    const Route route = gathering.route(transfer.route);
    ESPALIER_CHECK(first.rank == route.src && last.rank == route.src, "a rank sends its own shard alone");
    const std::size_t begin = place_of(offset_in_shard(first));
    const std::size_t end = place_of(offset_in_shard(last) + last.length);
    made.add_transfer(made.add_route(route.src, route.dst, route.links), SliceId(begin),
                      static_cast<std::uint32_t>(end - begin), Action::reduce_input, transfer.channel());
  }
  return made;
}

}  // namespace espalier::planners
