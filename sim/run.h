#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "schedule/chunking.h"
#include "schedule/dependencies.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/core/history.h"
#include "sim/core/progress.h"
#include "sim/model.h"
#include "sim/rounds/send_windows.h"

namespace espalier::sim {

/// Where a lane is.
/// Invariant: a lane either has one chunk on its way to the first link, or waits for one chunk of one other transfer,
/// for its source's window or for a rank to enter, or has nothing left.
struct alignas(64) Lane {
  std::int64_t ready = 0;  ///< The latest of all that its current chunk is known to wait for.
  TransferId transfer;     ///< The transfer whose chunk is next; none at the end.
  std::uint32_t chunk = 0;
  std::uint32_t dependency = 0;      ///< How many of its waits have been looked at for this chunk.
  LaneIndex next_waiting = no_lane;  ///< The next lane that waits for the same transfer to depart, or to arrive.

  // Of its transfer, so that a chunk needs nothing that lies apart.
  const Dependency* waits = nullptr;
  std::uint32_t wait_count = 0;
  std::uint32_t shared_list = SharedWaits::none;
  std::uint32_t chunk_count = 0;
  std::uint32_t alike_until = 0;  ///< The chunks before this one, from the current on, are as long as the latest.
  std::int64_t chunk_bytes = 0;   ///< Of the latest.
  RouteId route;
  bool reduces = false;
  bool departure_is_awaited = false;  ///< By some other transfer.
};

/// One execution of a compiled schedule, apart from how its network carries chunks: which chunk of which lane may go
/// when, and which rank is through. What a model does with a chunk it reports by `depart` and `arrive`.
class Run {
 public:
  /// Starts anew; memory of an earlier execution is used again. `ahead`: RunOptions::ahead. `first_order` is what its
  /// first transfer has as its place among the transfers of all runs.
  void begin(RunId id, const CompiledSchedule& compiled, Chunking chunking, std::uint32_t ahead,
             std::uint32_t first_order);

  [[nodiscard]] RunId id() const { return id_; }
  [[nodiscard]] const CompiledSchedule& compiled() const { return *compiled_; }
  [[nodiscard]] const Chunking& chunking() const { return chunking_; }
  [[nodiscard]] std::uint32_t order(TransferId transfer) const { return first_order_ + transfer.value(); }
  [[nodiscard]] Lane& lane(LaneIndex index) { return lanes_[index]; }
  /// The lane's next chunk would only stand in a queue if it asked earlier than this.
  [[nodiscard]] std::int64_t& held_until(LaneIndex index) { return held_until_[index]; }
  /// The bytes of the lane's chunk.
  [[nodiscard]] std::int64_t chunk_bytes(Lane& lane) const {
    if (lane.chunk >= lane.alike_until) measure_chunk(lane);
    return lane.chunk_bytes;
  }
  [[nodiscard]] const Path& path(const Lane& lane) const { return compiled_->paths()[lane.route.index()]; }
  [[nodiscard]] const Transfer& transfer(const Lane& lane) const {
    return compiled_->schedule().transfers[lane.transfer.index()];
  }
  /// Nothing of it is left to do: every rank has entered and every transfer has ended.
  [[nodiscard]] bool is_over() const { return open_transfers_ == 0 && ranks_to_enter_ == 0; }

  /// The rank takes part from `time` on. Calls `go(lane)` for every lane that may hand over now. Requires: once a rank.
  template <class Go>
  void enter(Rank rank, std::int64_t time, std::vector<RankEnd>& ended, Go&& go) {
    RankState& state = ranks_[rank.index()];
    state.entered = time;
    if (history != nullptr) history->entered(rank, time);
    --ranks_to_enter_;
    state.last = std::max(state.last, time);
    if (state.open == 0) ended.push_back({id_, rank, state.last});
    if (!has_begun_) {
      has_begun_ = true;
      for (const LaneIndex index : compiled_->lanes_of_relays()) {
        lanes_[index].ready = time;
        go(index);
      }
    }
    for (const LaneIndex index : compiled_->lanes_of(rank)) {
      Lane& lane = lanes_[index];
      lane.ready = std::max(lane.ready, time);
      if (may_begin(lane)) go(index);
    }
  }

  /// All ranks take part from `time` on: as `enter` for each, in one pass over the lanes. Requires: none has entered.
  template <class Go>
  void enter_all(std::int64_t time, std::vector<RankEnd>& ended, Go&& go) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].entered = ranks_[i].last = time;
      if (history != nullptr) history->entered(Rank(i), time);
      if (ranks_[i].open == 0) ended.push_back({id_, Rank(i), time});
    }
    ranks_to_enter_ = 0;
    has_begun_ = true;
    for (LaneIndex index = 0; index < lanes_.size(); ++index) {
      lanes_[index].ready = time;
      go(index);
    }
  }

  /// Finds out when the lane's chunk may go, `lane.ready`. False: something it waits for is not known yet, and `go` of
  /// a later `depart` or `arrive` will name the lane again. Requires: a lane with a transfer left.
  bool find_ready_time(LaneIndex index);

  /// Asks memory for what is needed when a chunk of this lane passes a resource, or its last one.
  void fetch(LaneIndex lane) const {
    __builtin_prefetch(&lanes_[lane]);
    __builtin_prefetch(&held_until_[lane]);
  }
  /// And what its next chunk waits for.
  void fetch_waits(LaneIndex index) const {
    const Lane& lane = lanes_[index];
    if (lane.wait_count > 0) progress_.fetch_arrivals(lane.waits[0].transfer());
  }
  void fetch_arrival(TransferId transfer) const { progress_.fetch_arrivals(transfer); }
  /// And who waits for it. After fetch_arrival, when that is there.
  void fetch_waiting(TransferId transfer) const {
    const LaneIndex lane = progress_.first_waiting_for_arrival(transfer);
    if (lane != no_lane) fetch(lane);
  }

  /// What arrived before this time is not asked for again.
  void set_past(std::int64_t time) { progress_.set_past(time); }

  /// The lane's chunk has left its source (or will, at `time`); the lane turns to its next one. Calls `go(lane)` for
  /// every lane that may hand over now, its own among them.
  template <class Go>
  void depart(ChunkId chunk, LaneIndex index, std::int64_t time, std::vector<RankEnd>& ended, Go&& go) {
    Lane& lane = lanes_[index];
    if (lane.departure_is_awaited) note_time(chunk, Wait::departure, time, go);
    lane.ready = time;
    lane.dependency = 0;
    if (++lane.chunk == lane.chunk_count) {
      end_at(src(lane), time, ended);
      lane.transfer = compiled_->lanes().next[chunk.transfer.index()];
      if (!lane.transfer.is_none()) turn_to_transfer(lane);
    }
    const ChunkId next{lane.transfer, lane.chunk};
    if (!next.transfer.is_none() && history != nullptr) history->origin(next, {chunk, Cause::lane});
    if (windows_.are_on()) {
      windows_.depart(index, chunk, time, next, [&](LaneIndex held, const SendWindows::Departure& departure) {
        wait_for_window(lanes_[held], departure);
        if (held != index && may_begin(lanes_[held])) go(held);
      });
    }
    if (!next.transfer.is_none()) go(index);
  }

  /// The chunk is at its destination (or will be, at `time`). `is_last`: of its transfer.
  template <class Go>
  void arrive(ChunkId chunk, bool is_last, std::int64_t time, std::vector<RankEnd>& ended, Go&& go) {
    note_time(chunk, Wait::arrival, time, go);
    if (!is_last) return;
    --open_transfers_;
    end_at(compiled_->schedule().dst(compiled_->schedule().transfers[chunk.transfer.index()]), time, ended);
  }

  History* history = nullptr;       ///< Where to record, if anywhere.
  std::uint32_t payload_ppm = 0;    ///< Payload per byte on the wire, in millionths.
  std::uint32_t chunks_moving = 0;  ///< Chunks that the model has of this run.
  bool is_aborted = false;

 private:
  struct RankState {
    std::int64_t entered = never;
    std::int64_t last = 0;   // when the last of its transfers ended
    std::uint32_t open = 0;  // transfers that it sends or receives and that have not ended
  };

  [[nodiscard]] Rank src(const Lane& lane) const { return compiled_->schedule().src(transfer(lane)); }
  [[nodiscard]] Rank dst(const Lane& lane) const { return compiled_->schedule().dst(transfer(lane)); }
  /// Relays are always there.
  [[nodiscard]] bool has_entered(Rank end) const {
    return end.index() >= ranks_.size() || ranks_[end.index()].entered != never;
  }
  [[nodiscard]] bool may_begin(const Lane& lane) const { return has_entered(src(lane)) && has_entered(dst(lane)); }
  /// A lane is held no longer: its chunk waits for that departure too.
  void wait_for_window(Lane& lane, const SendWindows::Departure& departure);
  void turn_to_transfer(Lane& lane);
  void measure_chunk(Lane& lane) const;
  void end_at(Rank end, std::int64_t time, std::vector<RankEnd>& ended);

  /// A list of dependencies that several transfers share, at one chunk: the lane that asks first looks at the list,
  /// all others wait for it.
  struct SharedWait {
    std::uint32_t chunk = no_chunk;
    LaneIndex leader = no_lane;
    LaneIndex first_follower = no_lane;  ///< The others are next to each other by Lane::next_waiting.
    bool is_over = true;
    std::int64_t time = 0;  ///< The latest of what is known; of the leader's own departures nothing.
    Origin origin;          ///< What was as late as that.
  };

  /// As find_ready_time for what the lane's transfer waits for; notes the latest in `time` and `origin`.
  bool look_at_waits(LaneIndex index, std::int64_t& time, Origin& origin);
  bool find_shared(SharedWait& shared, LaneIndex index);
  /// The lane's chunk waited until `time`, for `origin`, if for nothing later.
  void raise_ready(Lane& lane, std::int64_t time, const Origin& origin);

  /// Lets those go that wait for the same as this lane, if it waits no more.
  template <class Go>
  void wake_followers(std::uint32_t list, Go&& go) {
    if (list == SharedWaits::none || !shared_[list].is_over) return;
    LaneIndex follower = std::exchange(shared_[list].first_follower, no_lane);
    while (follower != no_lane) {
      const LaneIndex next = lanes_[follower].next_waiting;
      go(follower);
      follower = next;
    }
  }

  /// Lets the lanes go on that waited for this chunk of the transfer to depart or to arrive.
  template <class Go>
  void note_time(ChunkId chunk, Wait wait, std::int64_t time, Go&& go) {
    ESPALIER_CHECK(progress_.times(wait).known(chunk.transfer) == chunk.chunk, "chunks of a transfer stay in order");
    progress_.add(chunk.transfer, wait, time);
    LaneIndex* link = &progress_.times(wait).first_waiting(chunk.transfer);
    while (*link != no_lane) {
      const LaneIndex waiting = *link;
      Lane& lane = lanes_[waiting];
      if (lane.chunk > chunk.chunk) {
        link = &lane.next_waiting;
        continue;
      }
      *link = lane.next_waiting;
      const std::uint32_t list = lane.shared_list;
      go(waiting);
      wake_followers(list, go);
    }
  }

  RunId id_;
  const CompiledSchedule* compiled_ = nullptr;
  Chunking chunking_;
  std::uint32_t first_order_ = 0;
  std::uint64_t open_transfers_ = 0;
  std::uint32_t ranks_to_enter_ = 0;
  bool has_begun_ = false;
  std::vector<Lane> lanes_;
  std::vector<std::int64_t> held_until_;  // by lane: apart, as every resource on the way looks at it
  std::vector<RankState> ranks_;
  Progress progress_;
  SendWindows windows_;
  std::vector<SharedWait> shared_;  // by list
};

}  // namespace espalier::sim
