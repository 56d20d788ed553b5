#include "engine/program/order.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace espalier::engine {
namespace {

bool is_same_run(const Schedule& schedule, TransferId earlier, std::size_t later) {
  const Transfer& a = schedule.transfers[earlier.index()];
  const Transfer& b = schedule.transfers[later];
  return a.first_slice == b.first_slice && a.slice_count == b.slice_count;
}

}  // namespace

Result<ChunkOrder> ChunkOrder::make(const Schedule& schedule, const Chunking& chunking) {
  ChunkOrder order(schedule);
  order.first_.reserve(schedule.transfers.size() + 1);
  order.first_.push_back(0);
  for (const Transfer& transfer : schedule.transfers) {
    order.first_.push_back(order.first_.back() + chunking.pieces(transfer).count);
    if (order.first_.back() > max_chunks) {
      return fail(ErrorCode::too_large,
                  "the call would be cut into more than " + std::to_string(max_chunks) + " chunks",
                  "use larger chunks");
    }
  }
  order.find_joined(schedule);
  order.find_levels(schedule, chunking);
  return order;
}

void ChunkOrder::find_joined(const Schedule& schedule) {
  const std::size_t slices = schedule.slices.size();
  std::unordered_map<std::uint64_t, TransferId> last_reduction;  // By rank and slice; none after a copy.
  first_joined_.push_back(0);
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::size_t dst = schedule.dst(transfer).index();
    const auto begin = static_cast<std::ptrdiff_t>(joined_.size());
    for (std::size_t slice = transfer.first_slice.index(); slice < transfer.first_slice.index() + transfer.slice_count;
         ++slice) {
      if (!reduces(schedule.collective.kind)) break;
      const std::uint64_t place = dst * slices + slice;
      if (transfer.action() == Action::copy) {
        last_reduction.erase(place);
        continue;
      }
      const auto [entry, is_new] = last_reduction.try_emplace(place, TransferId(i));
      if (!is_new) {
        joined_.push_back(entry->second);
        entry->second = TransferId(i);
      }
    }
    std::sort(joined_.begin() + begin, joined_.end());
    joined_.erase(std::unique(joined_.begin() + begin, joined_.end()), joined_.end());
    first_joined_.push_back(joined_.size());
  }
}

void ChunkOrder::find_levels(const Schedule& schedule, const Chunking& chunking) {
  levels_.assign(first_.back(), 0);
  std::unordered_map<std::uint64_t, TransferId> last_on_channel;  // By route's ends and channel.
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const Pieces pieces = chunking.pieces(transfer);
    std::uint32_t floor = 0;
    const std::uint64_t ends = schedule.src(transfer).index() * max_ranks + schedule.dst(transfer).index();
    const auto [last, is_first] = last_on_channel.try_emplace((ends << 24U) | transfer.channel_value, TransferId(i));
    if (!is_first) {
      floor = levels_[first_[last->second.index() + 1] - 1] + 1;
      last->second = TransferId(i);
    }
    for (std::uint32_t chunk = 0; chunk < pieces.count; ++chunk) {
      std::uint32_t level = floor;
      const auto raise = [&](TransferId earlier, std::uint32_t above) {
        const std::uint32_t needed = chunking.needed_chunk(schedule.transfers[earlier.index()], transfer, chunk);
        if (needed != no_chunk) level = std::max(level, levels_[first_[earlier.index()] + needed] + above);
      };
      for (const Dependency& wait : waits(TransferId(i))) raise(wait.transfer(), 1);
      for (const TransferId earlier : joined(TransferId(i))) raise(earlier, is_same_run(schedule, earlier, i) ? 0 : 1);
      levels_[first_[i] + chunk] = level;
      floor = level + 1;
    }
  }
}

}  // namespace espalier::engine
