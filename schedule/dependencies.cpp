#include "schedule/dependencies.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/slice_moves.h"

namespace espalier {
namespace {

Dependency after(TransferId transfer, Wait wait) {
  Dependency dependency;
  dependency.transfer_value = transfer.value() & 0x7FFFFFFFU;
  dependency.on_departure = wait == Wait::departure ? 1 : 0;
  return dependency;
}

/// The accesses of one slice at one rank that later ones still have to wait for.
struct PlaceHistory {
  std::vector<Dependency> base;    ///< What every member of the current writes waited for.
  std::vector<Dependency> writes;  ///< The last copy, or the reductions since the last copy or read.
  std::vector<Dependency> reads;   ///< Reads since the current writes.
  bool writes_reduce = false;

  void clear() {
    base.clear();
    writes.clear();
    reads.clear();
    writes_reduce = false;
  }

  /// What a read waits for; notes it.
  std::span<const Dependency> read(TransferId transfer) {
    reads.push_back(after(transfer, Wait::departure));
    return writes;
  }

  /// What a copy into this place or a reduction waits for; notes it. Reads since the last writes have waited for those.
  std::span<const Dependency> write(TransferId transfer, Action action) {
    const bool reduces = action == Action::reduce;
    const bool joins = reduces && writes_reduce && reads.empty();
    if (!joins) {
      base.swap(reads.empty() ? writes : reads);
      writes.clear();
      reads.clear();
      writes_reduce = reduces;
    }
    writes.push_back(after(transfer, Wait::arrival));
    return base;
  }
};

/// Calls found(transfer, what it waits for) for every slice move, slice by slice.
template <class Found>
void replay(const Schedule& schedule, const SliceMoves& moves, const Found& found) {
  std::uint32_t rank_count = 0;
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    rank_count = std::max({rank_count, route.src.value() + 1, route.dst.value() + 1});
  }
  std::vector<PlaceHistory> places(rank_count);
  for (std::size_t slice = 0; slice < schedule.slices.size(); ++slice) {
    for (const TransferId id : moves.of(slice)) {
      const Transfer& transfer = schedule.transfers[id.index()];
      found(id, places[schedule.src(transfer).index()].read(id));
      found(id, places[schedule.dst(transfer).index()].write(id, transfer.action()));
    }
    for (const TransferId id : moves.of(slice)) {
      const Transfer& transfer = schedule.transfers[id.index()];
      places[schedule.src(transfer).index()].clear();
      places[schedule.dst(transfer).index()].clear();
    }
  }
}

/// In id order, an arrival before a departure of the same transfer.
bool comes_before(const Dependency& a, const Dependency& b) {
  if (a.transfer_value != b.transfer_value) return a.transfer_value < b.transfer_value;
  return a.on_departure < b.on_departure;
}

}  // namespace

Dependencies::Dependencies(const Schedule& schedule) : offsets_(schedule.transfers.size() + 1) {
  ESPALIER_CHECK(schedule.transfers.size() <= max_transfers, "transfer ids fit 31 bits");
  const SliceMoves moves(schedule);
  replay(schedule, moves,
         [&](TransferId id, std::span<const Dependency> waits) { offsets_[id.index() + 1] += waits.size(); });
  for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
  list_.resize(offsets_.back());
  std::vector<std::uint64_t> next(offsets_.begin(), offsets_.end() - 1);
  replay(schedule, moves, [&](TransferId id, std::span<const Dependency> waits) {
    std::ranges::copy(waits, list_.begin() + static_cast<std::ptrdiff_t>(next[id.index()]));
    next[id.index()] += waits.size();
  });
  // Each transfer once: the slices of a run mostly wait for the same ones.
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
    const auto begin = list_.begin() + static_cast<std::ptrdiff_t>(offsets_[i]);
    const auto end = list_.begin() + static_cast<std::ptrdiff_t>(offsets_[i + 1]);
    std::sort(begin, end, comes_before);
    const auto unique_end = std::unique(
        begin, end, [](const Dependency& a, const Dependency& b) { return a.transfer_value == b.transfer_value; });
    offsets_[i] = kept;
    const auto kept_end = std::copy(begin, unique_end, list_.begin() + static_cast<std::ptrdiff_t>(kept));
    kept = static_cast<std::uint64_t>(kept_end - list_.begin());
  }
  offsets_.back() = kept;
  list_.resize(kept);
  list_.shrink_to_fit();
}

}  // namespace espalier
