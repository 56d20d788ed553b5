#pragma once

// Tested by: tests/unit/schedule/schedule_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "schedule/bound.h"
#include "schedule/collective.h"

namespace espalier {

/// The largest numbers of a schedule. Verifying takes ranks^2 / 8 bytes, which is what limits the ranks.
inline constexpr std::size_t max_ranks = std::size_t{1} << 16;
inline constexpr std::uint32_t max_channels = std::uint32_t{1} << 24;
inline constexpr std::int64_t max_units = std::int64_t{1} << 62;
inline constexpr std::size_t max_slices = (std::size_t{1} << 32) - 2;
inline constexpr std::size_t max_transfers = (std::size_t{1} << 31) - 1;

/// What a transfer does at its destination with what it reads at its source: its value as earlier transfers left it,
/// or, for `reduce_input`, what the source brought, whatever has been added to that since.
enum class Action : std::uint8_t { copy, reduce, reduce_input };

/// "copy", "reduce", "reduce_input", as in the JSON form.
std::string_view to_string(Action action);
std::optional<Action> action_from(std::string_view name);

/// A run of the buffer's units that travels one way. `rank` and `to` as docs/schedule.md says for each collective.
struct Slice {
  std::int64_t offset = 0;  ///< In units.
  std::int64_t length = 0;  ///< In units.
  Rank rank;                ///< Whose data it is (all_gather, gather, all_to_all, send_recv) or who ends with it.
  Rank to;                  ///< all_to_all and send_recv: who receives it.

  [[nodiscard]] PartRanks ranks() const { return {rank, to}; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// One run of slices going from the first to the last rank of a route. 16 bytes, so that tens of millions fit.
struct Transfer {
  SliceId first_slice;
  std::uint32_t slice_count = 1;
  RouteId route;
  std::uint32_t channel_value : 30 = 0;
  std::uint32_t reads_input : 1 = 0;  ///< Only of those that reduce.
  std::uint32_t reduces : 1 = 0;

  [[nodiscard]] ChannelId channel() const { return ChannelId(channel_value); }
  [[nodiscard]] Action action() const {
    if (reduces == 0) return Action::copy;
    return reads_input != 0 ? Action::reduce_input : Action::reduce;
  }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};
static_assert(sizeof(Transfer) == 16);

/// The way a transfer takes: from one end to another, each a rank or a relay of the schedule, over links whose inner
/// nodes only forward.
struct Route {
  Rank src;
  Rank dst;
  std::span<const LinkId> links;
};

/// How a schedule was found to run fastest at one message size, on links alone (docs/simulator.md, "Rounds").
struct SizedPacing {
  Bytes size;
  Bytes chunk;              ///< The largest chunk.
  std::uint32_t ahead = 0;  ///< As Pacing::ahead.
  friend bool operator==(const SizedPacing&, const SizedPacing&) = default;
};

/// What a schedule is of and how its buffer is divided: all of it but routes and transfers.
struct ScheduleHeader {
  Collective collective;
  std::string topology;               ///< Name of the topology that the routes belong to.
  std::string algorithm;              ///< Name of the planner.
  std::int64_t units = 0;             ///< Length of the buffer in units.
  std::vector<Slice> slices;          ///< In offset order; they tile [0, units).
  std::optional<Bound> bound;         ///< The bound of the collective on the topology, when it was computed.
  std::optional<SizedPacing> pacing;  ///< How to cut it at one message size, when that was looked for.
  /// Switches that take part: they copy or add what comes to them. They are numbered on from the ranks, the first one
  /// being rank_count, wherever a route has its ends (schedule/relays.h).
  std::vector<NodeId> relays;
};

/// What moves where, in program order; not when. Plain data: `verify` says whether it keeps the collective's promise.
/// Transfers may be in any state that the types allow; readers check ids before they append (docs/schedule.md, S1).
///
/// A transfer reads its slices at the source as all earlier transfers left them, or as the source brought them
/// (reduce_input), and writes (copy) or adds (reduce) them at the destination. So its dependencies follow from the
/// order (schedule/dependencies.h) and are not stored.
class Schedule : public ScheduleHeader {
 public:
  Schedule() = default;
  Schedule(Collective collective, std::string topology, std::string algorithm);
  /// Without routes and transfers.
  explicit Schedule(ScheduleHeader header) : ScheduleHeader(std::move(header)) {}

  std::vector<Transfer> transfers;  ///< In program order.

  [[nodiscard]] const ScheduleHeader& header() const { return *this; }
  [[nodiscard]] std::size_t route_count() const { return route_ends_.size(); }
  [[nodiscard]] Route route(RouteId id) const;
  [[nodiscard]] Rank src(const Transfer& transfer) const { return route_ends_[transfer.route.index()].src; }
  [[nodiscard]] Rank dst(const Transfer& transfer) const { return route_ends_[transfer.route.index()].dst; }

  /// The id of this route, added when it is new.
  /// Cost: O(links) expected.
  RouteId add_route(Rank src, Rank dst, std::span<const LinkId> links);

  /// Appends a transfer and returns its id.
  TransferId add_transfer(RouteId route, SliceId first_slice, std::uint32_t slice_count, Action action,
                          ChannelId channel);

  /// Whether any transfer reads an input.
  [[nodiscard]] bool reads_inputs() const;
  /// One more than the largest channel used; 0 without transfers.
  [[nodiscard]] std::uint32_t channel_count() const;

 private:
  struct Ends {
    Rank src;
    Rank dst;
  };
  std::vector<Ends> route_ends_;
  std::vector<std::uint32_t> route_offsets_{0};
  std::vector<LinkId> route_links_;
  /// A place of the hash table of routes; free without a route.
  struct RoutePlace {
    std::uint32_t hash = 0;
    RouteId route;
  };
  void add_place(RoutePlace place);

  std::vector<RoutePlace> route_places_;  ///< As many as a power of two, at most half of them taken; probed in turn.
};

}  // namespace espalier
