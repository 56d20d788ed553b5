#include "schedule/json/plan_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule/chunking.h"
#include "schedule/json/plan_routes.h"
#include "schedule/relays.h"

namespace espalier {
namespace {

constexpr std::uint32_t bit(std::size_t index) { return std::uint32_t{1} << index; }

/// The largest valid index into `count` things.
std::int64_t last_of(std::size_t count) { return static_cast<std::int64_t>(count) - 1; }

/// The number of a rank, or of any end where there are as many as those.
bool read_rank(PlanCursor& cursor, std::string_view what, std::size_t ends, Rank& rank) {
  std::int64_t value = 0;
  if (!cursor.read_ranged(what, 0, last_of(ends), value)) return false;
  rank = Rank(static_cast<std::size_t>(value));
  return true;
}

bool read_slice(PlanCursor& cursor, const Schedule& schedule, Slice& slice) {
  static constexpr std::array<std::string_view, 4> keys = {"offset", "length", "rank", "to"};
  const CollectiveKind kind = schedule.collective.kind;
  const std::array wanted = {true, true, slices_have_rank(kind), slices_have_destination(kind)};
  std::uint32_t required = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) required |= wanted[i] ? bit(i) : 0;
  return cursor.read_object(keys, required, [&](std::size_t key) {
    if (!wanted[key]) {
      return cursor.json.fail(cursor.json.key_offset(),
                              fmt::format("slices of {} carry no '{}'", to_string(kind), keys[key]), "remove it");
    }
    switch (key) {
      case 0: return cursor.read_ranged("'offset'", 0, schedule.units - 1, slice.offset);
      case 1: return cursor.read_ranged("'length'", 1, schedule.units, slice.length);
      case 2: return read_rank(cursor, "'rank'", schedule.collective.rank_count, slice.rank);
      default: return read_rank(cursor, "'to'", schedule.collective.rank_count, slice.to);
    }
  });
}

/// The members of a transfer as they stand in the text, where they can come in any order.
struct WrittenTransfer {
  std::int64_t first_slice = 0;
  std::int64_t slice_count = 0;
  Rank src;
  Rank dst;
  Action action = Action::copy;
  std::int64_t channel = 0;
  std::size_t route_offset = 0;
  std::string_view route;  ///< Empty where there is none.
};

bool read_run(PlanCursor& cursor, std::size_t slices, WrittenTransfer& transfer) {
  const std::size_t begin = cursor.json.next_offset();
  if (!cursor.json.begin_array()) return false;
  std::size_t length = 0;
  for (; length <= 2 && cursor.json.next_element(); ++length) {
    if (length == 0 && !cursor.read_ranged("its first slice", 0, last_of(slices), transfer.first_slice)) return false;
    const std::int64_t left = static_cast<std::int64_t>(slices) - transfer.first_slice;
    if (length == 1 && !cursor.read_ranged("its number of slices", 1, left, transfer.slice_count)) return false;
  }
  return !cursor.json.failed() &&
         (length == 2 || cursor.json.fail(begin, "'slices' is not a pair", "give [first slice, number of slices]"));
}

bool read_action(PlanCursor& cursor, Action& action) {
  const std::size_t begin = cursor.json.next_offset();
  std::string_view name;
  if (!cursor.json.read_string(name)) return false;
  const auto found = action_from(name);
  if (!found) {
    return cursor.json.fail(begin, fmt::format("'action' is '{}'", shown(name)),
                            "give 'copy', 'reduce' or 'reduce_input'");
  }
  action = *found;
  return true;
}

bool read_transfer(PlanCursor& cursor, const Schedule& schedule, WrittenTransfer& transfer) {
  static constexpr std::array<std::string_view, 6> keys = {"slices", "src", "dst", "action", "channel", "route"};
  constexpr std::uint32_t all_but_route = bit(5) - 1;
  return cursor.read_object(keys, all_but_route, [&](std::size_t key) {
    switch (key) {
      case 0: return read_run(cursor, schedule.slices.size(), transfer);
      case 1: return read_rank(cursor, "'src'", end_count(schedule), transfer.src);
      case 2: return read_rank(cursor, "'dst'", end_count(schedule), transfer.dst);
      case 3: return read_action(cursor, transfer.action);
      case 4: return cursor.read_ranged("'channel'", 0, last_of(max_channels), transfer.channel);
      default: transfer.route_offset = cursor.json.next_offset(); return cursor.json.read_raw(transfer.route);
    }
  });
}

/// "p/q" with p >= 0 and q > 0.
bool read_fraction(PlanCursor& cursor, Rational& value) {
  constexpr std::size_t max_digits = 10'000;  // Reading digits takes time that grows with their square.
  const std::size_t begin = cursor.json.next_offset();
  std::string_view text;
  if (!cursor.json.read_string(text)) return false;
  const std::size_t slash = text.find('/');
  const std::string numerator(text.substr(0, slash));
  const std::string denominator(slash == std::string_view::npos ? "" : text.substr(slash + 1));
  const auto is_number = [](const std::string& digits) {
    return !digits.empty() && digits.size() <= max_digits && (digits[0] != '0' || digits == "0") &&
           std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!is_number(numerator) || !is_number(denominator) || denominator == "0") {
    return cursor.json.fail(begin, fmt::format("'time_per_byte' is '{}'", shown(text)),
                            "give seconds per byte as a fraction, such as '1/50000000000'");
  }
  value = Rational(BigInteger(numerator), BigInteger(denominator));
  return true;
}

bool read_cut(PlanCursor& cursor, const Topology& topology, std::vector<NodeId>& pacing) {
  if (!cursor.json.begin_array()) return false;
  std::string_view name;
  while (cursor.json.next_element()) {
    const std::size_t begin = cursor.json.next_offset();
    if (!cursor.json.read_string(name)) return false;
    pacing.push_back(topology.find_node(name));
    if (pacing.back().is_none()) {
      return cursor.json.fail(begin, fmt::format("'{}' is not a node of '{}'", shown(name), shown(topology.name())));
    }
  }
  return !cursor.json.failed();
}

}  // namespace

bool read_slices(PlanCursor& cursor, Schedule& schedule) {
  if (!cursor.json.begin_array()) return false;
  while (cursor.json.next_element()) {
    cursor.set_item("slice", schedule.slices.size());
    if (schedule.slices.size() == max_slices) {
      cursor.code = ErrorCode::too_large;
      return cursor.json.fail(cursor.json.next_offset(), "there are more slices than a schedule can have");
    }
    Slice slice;
    if (!read_slice(cursor, schedule, slice)) return false;
    schedule.slices.push_back(slice);
  }
  cursor.clear_item();
  return !cursor.json.failed();
}

bool read_transfers(PlanCursor& cursor, const Topology& topology, Schedule& schedule) {
  PlanRoutes routes(cursor, topology, schedule);
  if (!cursor.json.begin_array()) return false;
  while (cursor.json.next_element()) {
    cursor.set_item("transfer", schedule.transfers.size());
    const std::size_t begin = cursor.json.next_offset();
    if (schedule.transfers.size() == max_transfers) {
      cursor.code = ErrorCode::too_large;
      return cursor.json.fail(begin, "there are more transfers than a schedule can have");
    }
    WrittenTransfer written;
    if (!read_transfer(cursor, schedule, written)) return false;
    RouteId route;
    const bool resolved = written.route.empty()
                              ? routes.direct(begin, written.src, written.dst, route)
                              : routes.read(written.route_offset, written.route, written.src, written.dst, route);
    if (!resolved) return false;
    schedule.add_transfer(route, SliceId(static_cast<std::size_t>(written.first_slice)),
                          static_cast<std::uint32_t>(written.slice_count), written.action,
                          ChannelId(static_cast<std::size_t>(written.channel)));
  }
  cursor.clear_item();
  return !cursor.json.failed();
}

bool read_bound(PlanCursor& cursor, const Topology& topology, Schedule& schedule) {
  if (cursor.json.take_null()) return true;
  static constexpr std::array<std::string_view, 5> keys = {"algbw", "time_per_byte", "cut", "what", "floor"};
  Bound bound;
  std::optional<double> algbw;
  const std::size_t begin = cursor.json.next_offset();
  const bool read = cursor.read_object(keys, bit(1) | bit(2), [&](std::size_t key) {
    switch (key) {
      case 0: return cursor.json.take_null() || cursor.json.read_number(algbw.emplace());
      case 1: return read_fraction(cursor, bound.time_per_byte);
      case 2: return read_cut(cursor, topology, bound.cut);
      case 4: return cursor.json.read_bool(bound.is_floor);
      default: {
        std::string_view what;
        if (!cursor.json.read_string(what)) return false;
        bound.what = what;
        return true;
      }
    }
  });
  if (!read) return false;
  constexpr double printed_precision = 1e-6;  // People round what they write; the fraction is what counts.
  if (algbw && std::abs(*algbw * to_double(bound.time_per_byte) - 1) > printed_precision) {
    return cursor.json.fail(begin, fmt::format("'algbw' {} is not one over 'time_per_byte'", *algbw),
                            "correct one of them, or leave 'algbw' out");
  }
  schedule.bound = std::move(bound);
  return true;
}

bool read_chunking(PlanCursor& cursor, Schedule& schedule) {
  if (cursor.json.take_null()) return true;
  static constexpr std::array<std::string_view, 3> keys = {"size", "chunk", "ahead"};
  static constexpr std::array<std::int64_t, 3> least = {1, 1, 0};
  static constexpr std::array<std::int64_t, 3> most = {max_message_size.count, max_message_size.count, max_ahead};
  std::array<std::int64_t, 3> values{};
  const bool read = cursor.read_object(keys, bit(0) | bit(1), [&](std::size_t key) {
    return cursor.read_ranged(fmt::format("'{}'", keys[key]), least[key], most[key], values[key]);
  });
  if (read) schedule.pacing = SizedPacing{{values[0]}, {values[1]}, static_cast<std::uint32_t>(values[2])};
  return read;
}

}  // namespace espalier
