#include "schedule/slice_moves.h"

#include <numeric>

namespace espalier {

SliceMoves::SliceMoves(const Schedule& schedule) : offsets_(schedule.slices.size() + 2) {
  // Every run adds one at its begin and takes it away at its end, so a prefix sum counts the moves of each slice. The
  // counts sit one place to the right of where the offsets belong until the ids are filled in.
  for (const Transfer& transfer : schedule.transfers) {
    ++offsets_[transfer.first_slice.index() + 1];
    --offsets_[transfer.first_slice.index() + transfer.slice_count + 1];
  }
  offsets_.pop_back();
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  transfers_.resize(offsets_.back());
  std::vector<std::uint64_t> next(offsets_.begin(), offsets_.end() - 1);
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::size_t first = transfer.first_slice.index();
    for (std::size_t slice = first; slice < first + transfer.slice_count; ++slice) {
      transfers_[next[slice]++] = TransferId(i);
    }
  }
}

}  // namespace espalier
