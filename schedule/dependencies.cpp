#include "schedule/dependencies.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "schedule/slice_moves.h"

namespace espalier {
namespace {

using DependencyList = std::vector<Dependency>;

Dependency after(TransferId transfer, Wait wait) {
  Dependency dependency;
  dependency.transfer_value = transfer.value() & 0x7FFFFFFFU;
  dependency.on_departure = wait == Wait::departure ? 1 : 0;
  return dependency;
}

/// In id order, an arrival before a departure of the same transfer.
bool comes_before(const Dependency& a, const Dependency& b) {
  if (a.transfer_value != b.transfer_value) return a.transfer_value < b.transfer_value;
  return a.on_departure < b.on_departure;
}

bool same_transfer(const Dependency& a, const Dependency& b) { return a.transfer_value == b.transfer_value; }

constexpr std::uint64_t not_kept = UINT64_MAX;

/// The accesses of one slice at one rank that later ones still have to wait for; all lists in id order.
struct PlaceHistory {
  DependencyList base;    ///< What every member of the current writes waited for.
  DependencyList writes;  ///< The last copy, or the reductions since the last copy or read.
  DependencyList reads;   ///< Reads since the current writes.
  DependencyList before;  ///< Earlier writes, by when they were replaced: they have arrived when the current ones have.
  bool writes_reduce = false;
  std::uint64_t writes_kept_at = not_kept;  ///< Where the final list holds `writes`, once a transfer needs them alone.

  void clear() {
    base.clear();
    writes.clear();
    reads.clear();
    before.clear();
    writes_reduce = false;
    writes_kept_at = not_kept;
  }

  /// Notes a copy into this place or a reduction; `base` is then what it waits for. Reads since the last writes have
  /// themselves waited for those.
  void write(TransferId transfer, Action action) {
    const bool reduces = action != Action::copy;
    const bool joins = reduces && writes_reduce && reads.empty();
    if (!joins) {
      before.insert(before.end(), writes.begin(), writes.end());
      base.swap(reads.empty() ? writes : reads);
      writes.clear();
      reads.clear();
      writes_reduce = reduces;
    }
    writes.push_back(after(transfer, Wait::arrival));
    writes_kept_at = not_kept;
  }
};

/// Calls found(transfer, source, destination) for every slice move, slice by slice: the transfer reads what
/// source.writes holds, and waits for it and for destination.base.
template <class Found>
void replay(const Schedule& schedule, const SliceMoves& moves, const Found& found) {
  std::uint32_t rank_count = 0;
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    rank_count = std::max({rank_count, route.src.value() + 1, route.dst.value() + 1});
  }
  std::vector<PlaceHistory> places(rank_count);
  PlaceHistory input;  // What a rank brought is there from the start, and nothing replaces it.
  for (std::size_t slice = 0; slice < schedule.slices.size(); ++slice) {
    for (const TransferId id : moves.of(slice)) {
      const Transfer& transfer = schedule.transfers[id.index()];
      const bool reads_input = transfer.reads_input != 0;
      PlaceHistory& source = reads_input ? input : places[schedule.src(transfer).index()];
      PlaceHistory& destination = places[schedule.dst(transfer).index()];
      if (!reads_input) source.reads.push_back(after(id, Wait::departure));
      destination.write(id, transfer.action());
      found(id, source, destination);
    }
    for (const TransferId id : moves.of(slice)) {
      const Transfer& transfer = schedule.transfers[id.index()];
      places[schedule.src(transfer).index()].clear();
      places[schedule.dst(transfer).index()].clear();
    }
  }
}

/// True when whoever reads at the source waits for each of these, too: for the arrivals there, and so for those before.
bool covers(const PlaceHistory& source, const DependencyList& waits) {
  const auto has = [](const DependencyList& list, const Dependency& wanted) {
    const auto found = std::ranges::lower_bound(
        list, wanted, [](const Dependency& a, const Dependency& b) { return a.transfer_value < b.transfer_value; });
    return found != list.end() && same_transfer(*found, wanted);
  };
  return std::ranges::all_of(
      waits, [&](const Dependency& wanted) { return has(source.writes, wanted) || has(source.before, wanted); });
}

/// What a transfer waits for besides source.writes.
std::span<const Dependency> rest_of(const PlaceHistory& source, const PlaceHistory& destination) {
  if (covers(source, destination.base)) return {};
  return destination.base;
}

}  // namespace

void Dependencies::keep(TransferId transfer, std::span<const Dependency> waits) {
  begins_[transfer.index()] = list_.size();
  counts_[transfer.index()] = static_cast<std::uint32_t>(waits.size());
  list_.insert(list_.end(), waits.begin(), waits.end());
}

Dependencies::Dependencies(const Schedule& schedule)
    : begins_(schedule.transfers.size()), counts_(schedule.transfers.size()) {
  ESPALIER_CHECK(schedule.transfers.size() <= max_transfers, "transfer ids fit 31 bits");
  const SliceMoves moves(schedule);
  const auto is_run = [&](TransferId id) { return schedule.transfers[id.index()].slice_count > 1; };
  DependencyList merged;
  bool any_runs = false;
  replay(schedule, moves, [&](TransferId id, PlaceHistory& source, const PlaceHistory& destination) {
    const std::span<const Dependency> rest = rest_of(source, destination);
    if (is_run(id)) {
      any_runs = true;
      begins_[id.index()] += source.writes.size() + rest.size();  // how many there are to gather
    } else if (!rest.empty()) {
      merged.clear();
      std::ranges::set_union(source.writes, rest, std::back_inserter(merged), comes_before);
      merged.erase(std::unique(merged.begin(), merged.end(), same_transfer), merged.end());
      keep(id, merged);
    } else if (source.writes_kept_at == not_kept) {
      source.writes_kept_at = list_.size();
      keep(id, source.writes);
    } else {
      begins_[id.index()] = source.writes_kept_at;
      counts_[id.index()] = static_cast<std::uint32_t>(source.writes.size());
    }
  });
  if (any_runs) gather_runs(schedule, moves);
  list_.shrink_to_fit();
  for (const Dependency wait : list_) {
    if (wait.on_departure == 0) continue;
    if (departure_is_awaited_.empty()) departure_is_awaited_.resize(begins_.size(), 0);
    departure_is_awaited_[wait.transfer().index()] = 1;
  }
}

void Dependencies::gather_runs(const Schedule& schedule, const SliceMoves& moves) {
  const auto is_run = [&](std::size_t id) { return schedule.transfers[id].slice_count > 1; };
  std::vector<std::uint64_t> ends(begins_.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i] = total;
    if (is_run(i)) total += begins_[i];
  }
  DependencyList gathered(total);
  replay(schedule, moves, [&](TransferId id, const PlaceHistory& source, const PlaceHistory& destination) {
    if (!is_run(id.index())) return;
    std::uint64_t& end = ends[id.index()];
    for (const std::span<const Dependency> waits :
         {std::span<const Dependency>(source.writes), rest_of(source, destination)}) {
      std::ranges::copy(waits, gathered.begin() + static_cast<std::ptrdiff_t>(end));
      end += waits.size();
    }
  });
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!is_run(i)) continue;
    const std::span<Dependency> waits = std::span(gathered).subspan(ends[i] - begins_[i], begins_[i]);
    std::ranges::sort(waits, comes_before);  // The slices of a run mostly wait for the same transfers.
    const auto duplicates = std::ranges::unique(waits, same_transfer);
    keep(TransferId(i), waits.first(waits.size() - duplicates.size()));
  }
}

}  // namespace espalier
