#include "sim/run.h"

#include <span>
#include <utility>

namespace espalier::sim {

void Run::begin(RunId id, const CompiledSchedule& compiled, Chunking chunking, std::uint32_t ahead,
                std::uint32_t first_order) {
  id_ = id;
  compiled_ = &compiled;
  chunking_ = std::move(chunking);
  first_order_ = first_order;
  history = nullptr;
  chunks_moving = 0;
  is_aborted = false;
  has_begun_ = false;

  const Schedule& schedule = compiled.schedule();
  open_transfers_ = schedule.transfers.size();
  shared_.assign(compiled.shared_waits().count(), {});
  ranks_.assign(schedule.collective.rank_count, {});
  ranks_to_enter_ = schedule.collective.rank_count;
  for (const Transfer& transfer : schedule.transfers) {
    for (const Rank end : {schedule.src(transfer), schedule.dst(transfer)}) {
      if (end.index() < ranks_.size()) ++ranks_[end.index()].open;
    }
  }
  progress_.reset(schedule.transfers.size(), compiled.dependencies().wait_for_departures());
  lanes_.assign(compiled.lanes().first.size(), {});
  held_until_.assign(lanes_.size(), 0);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].transfer = compiled.lanes().first[i];
    turn_to_transfer(lanes_[i]);
  }
  windows_.begin(compiled, Rounds(compiled, chunking_, ahead));
}

void Run::wait_for_window(Lane& lane, const SendWindows::Departure& departure) {
  if (departure.time <= lane.ready) return;
  lane.ready = departure.time;
  if (history != nullptr) history->origin({lane.transfer, lane.chunk}, {departure.chunk, Cause::window});
}

void Run::turn_to_transfer(Lane& lane) {
  const Transfer& next = transfer(lane);
  lane.chunk = 0;
  lane.shared_list = compiled_->shared_waits().of(lane.transfer);
  const std::span<const Dependency> waits = compiled_->dependencies().of(lane.transfer);
  lane.waits = waits.data();
  lane.wait_count = static_cast<std::uint32_t>(waits.size());
  lane.chunk_count = chunking_.pieces(next).count;
  lane.alike_until = 0;
  lane.route = next.route;
  lane.reduces = next.reduces != 0;
  lane.departure_is_awaited = compiled_->dependencies().departure_is_awaited(lane.transfer);
}

void Run::measure_chunk(Lane& lane) const {
  const Pieces pieces = chunking_.pieces(transfer(lane));
  lane.chunk_bytes = chunking_.bytes(pieces, lane.chunk);
  lane.alike_until = lane.chunk + 1 + chunking_.alike_behind(pieces, lane.chunk);
}

void Run::raise_ready(Lane& lane, std::int64_t time, const Origin& origin) {
  if (time <= lane.ready) return;
  lane.ready = time;
  if (history != nullptr) history->origin({lane.transfer, lane.chunk}, origin);
}

bool Run::find_ready_time(LaneIndex index) {
  Lane& lane = lanes_[index];
  if (windows_.holds(index)) return false;
  if (lane.shared_list != SharedWaits::none) {
    SharedWait& shared = shared_[lane.shared_list];
    const bool turns = shared.is_over && (shared.chunk == no_chunk || shared.chunk < lane.chunk);
    if (turns) shared = {lane.chunk, index, no_lane, false, 0, {}};
    if (shared.chunk == lane.chunk) return find_shared(shared, index);
    // A lane that is behind the others looks for itself.
  }
  std::int64_t time = lane.ready;
  Origin origin;
  const bool is_known = look_at_waits(index, time, origin);
  raise_ready(lane, time, origin);
  return is_known;
}

bool Run::find_shared(SharedWait& shared, LaneIndex index) {
  Lane& lane = lanes_[index];
  if (!shared.is_over && shared.leader != index) {
    lane.next_waiting = shared.first_follower;
    shared.first_follower = index;
    return false;
  }
  if (!shared.is_over) shared.is_over = look_at_waits(index, shared.time, shared.origin);
  if (shared.is_over) raise_ready(lane, shared.time, shared.origin);
  return shared.is_over;
}

bool Run::look_at_waits(LaneIndex index, std::int64_t& time, Origin& origin) {
  Lane& lane = lanes_[index];
  for (; lane.dependency < lane.wait_count; ++lane.dependency) {
    const Dependency dependency = lane.waits[lane.dependency];
    const TransferId earlier = dependency.transfer();
    const std::uint32_t needed =
        chunking_.needed_chunk(compiled_->schedule().transfers[earlier.index()], transfer(lane), lane.chunk);
    if (needed == no_chunk) continue;
    KnownTimes& times = progress_.times(dependency.wait());
    const std::int64_t known = times.of(earlier, needed);
    if (known == unknown_time) {
      lane.next_waiting = std::exchange(times.first_waiting(earlier), index);
      return false;
    }
    if (known <= time) continue;
    time = known;
    origin = {{earlier, needed}, dependency.wait() == Wait::departure ? Cause::departure : Cause::arrival};
  }
  return true;
}

void Run::end_at(Rank end, std::int64_t time, std::vector<RankEnd>& ended) {
  if (end.index() >= ranks_.size()) return;
  RankState& state = ranks_[end.index()];
  state.last = std::max(state.last, time);
  if (--state.open == 0) ended.push_back({id_, end, state.last});
}

}  // namespace espalier::sim
