#include "sim/run.h"

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
  first_waiting_.assign(schedule.transfers.size(), no_lane);
  shared_.assign(compiled.shared_waits().count(), {});
  ranks_.assign(schedule.collective.rank_count, {});
  ranks_to_enter_ = schedule.collective.rank_count;
  std::vector<std::uint32_t> chunk_counts;
  chunk_counts.reserve(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers) {
    chunk_counts.push_back(chunking_.pieces(transfer).count);
    for (const Rank end : {schedule.src(transfer), schedule.dst(transfer)}) {
      if (end.index() < ranks_.size()) ++ranks_[end.index()].open;
    }
  }
  progress_.reset(std::move(chunk_counts));
  lanes_.assign(compiled.lanes().first.size(), {});
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
  lane.pieces = chunking_.pieces(transfer(lane));
  lane.chunk = 0;
}

void Run::raise_ready(Lane& lane, std::int64_t time, const Origin& origin) {
  if (time <= lane.ready) return;
  lane.ready = time;
  if (history != nullptr) history->origin({lane.transfer, lane.chunk}, origin);
}

bool Run::find_ready_time(LaneIndex index) {
  Lane& lane = lanes_[index];
  if (windows_.holds(index)) return false;
  if (const std::uint32_t list = compiled_->shared_waits().of(lane.transfer); list != SharedWaits::none) {
    SharedWait& shared = shared_[list];
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
  const std::span<const Dependency> dependencies = compiled_->dependencies().of(lane.transfer);
  for (; lane.dependency < dependencies.size(); ++lane.dependency) {
    const Dependency dependency = dependencies[lane.dependency];
    const TransferId earlier = dependency.transfer();
    const std::uint32_t needed =
        chunking_.needed_chunk(compiled_->schedule().transfers[earlier.index()], transfer(lane), lane.chunk);
    if (needed == no_chunk) continue;
    const bool departure = dependency.wait() == Wait::departure;
    const ChunkTimes times = progress_.look_up(earlier, needed);
    const std::int64_t known = departure ? times.departed : times.arrived;
    if (known == unknown_time) {
      lane.awaited_chunk = needed;
      lane.awaited = dependency.wait();
      lane.next_waiting = first_waiting_[earlier.index()];
      first_waiting_[earlier.index()] = index;
      return false;
    }
    if (known <= time) continue;
    time = known;
    origin = {{earlier, needed}, departure ? Cause::departure : Cause::arrival};
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
