#include "schedule/interpret.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"
#include "schedule/relays.h"

namespace espalier {
namespace {

std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// The units [begin, end) of a run of slices.
struct UnitRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

UnitRange units_of(const Schedule& schedule, const Transfer& transfer) {
  const Slice& first = schedule.slices[transfer.first_slice.index()];
  const Slice& last = schedule.slices[transfer.first_slice.index() + transfer.slice_count - 1];
  return {static_cast<std::size_t>(first.offset), static_cast<std::size_t>(last.offset + last.length)};
}

}  // namespace

void interpret(const Schedule& schedule, std::vector<UnitValues>& buffers) {
  ESPALIER_CHECK(buffers.size() == schedule.collective.rank_count, "a buffer per rank");
  buffers.resize(end_count(schedule), UnitValues(static_cast<std::size_t>(schedule.units)));
  const std::vector<UnitValues> inputs = schedule.reads_inputs() ? buffers : std::vector<UnitValues>();
  for (const Transfer& transfer : schedule.transfers) {
    const UnitValues& src = (transfer.reads_input != 0 ? inputs : buffers)[schedule.src(transfer).index()];
    UnitValues& dst = buffers[schedule.dst(transfer).index()];
    const UnitRange units = units_of(schedule, transfer);
    for (std::size_t unit = units.begin; unit < units.end; ++unit) {
      dst[unit] = transfer.reduces != 0 ? add(dst[unit], src[unit]) : src[unit];
    }
  }
  buffers.resize(schedule.collective.rank_count);
}

InterpretCase make_interpret_case(const Schedule& schedule, std::uint64_t seed) {
  const std::size_t ranks = schedule.collective.rank_count;
  const auto units = static_cast<std::size_t>(schedule.units);
  Random random(seed);
  InterpretCase made;
  made.before.assign(ranks, UnitValues(units));
  made.after.assign(ranks, UnitValues(units));
  made.defined.assign(ranks, std::vector<bool>(units));
  for (UnitValues& buffer : made.before) {
    for (std::int64_t& value : buffer) value = static_cast<std::int64_t>(random.next());
  }
  for (const Slice& slice : schedule.slices) {
    const Rank bringer = bringer_of(schedule.collective, slice.ranks());
    const Rank receiver = receiver_of(schedule.collective, slice.ranks());
    for (auto unit = static_cast<std::size_t>(slice.offset);
         unit < static_cast<std::size_t>(slice.offset + slice.length); ++unit) {
      std::int64_t result = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        if (bringer.is_none() || bringer == Rank(r)) result = add(result, made.before[r][unit]);
      }
      for (std::size_t r = 0; r < ranks; ++r) {
        if (!receiver.is_none() && receiver != Rank(r)) continue;
        made.after[r][unit] = result;
        made.defined[r][unit] = true;
      }
    }
  }
  return made;
}

bool keeps_promise(const InterpretCase& expected, const std::vector<UnitValues>& buffers) {
  for (std::size_t r = 0; r < expected.after.size(); ++r) {
    for (std::size_t unit = 0; unit < expected.after[r].size(); ++unit) {
      if (expected.defined[r][unit] && buffers[r][unit] != expected.after[r][unit]) return false;
    }
  }
  return true;
}

}  // namespace espalier
