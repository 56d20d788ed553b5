#include "sim/link_model.h"

#include <algorithm>

namespace espalier::sim {
LinkModel::LinkModel(const Schedule& schedule, const Chunking& chunking, const Dependencies& dependencies,
                     const Lanes& lanes, Network& network, History* history)
    : schedule_(schedule),
      chunking_(chunking),
      dependencies_(dependencies),
      next_on_lane_(lanes.next_on_lane),
      network_(network),
      history_(history),
      lanes_(lanes.lanes),
      progress_(schedule.transfers.size()),
      first_waiting_(schedule.transfers.size(), no_lane) {}

void LinkModel::run() {
  for (LaneIndex lane = 0; lane < lanes_.size(); ++lane) hand_over(lane);
  while (!queue_.empty()) {
    queue_.pop_earliest(batch_);
    sort_batch();
    now_ = batch_.front().time;
    std::size_t position = 0;
    while (position < batch_.size() || !late_.empty()) serve(next_of_now(position).packet);
  }
}

/// Whether one of two events of the same time comes after the other: by transfer, then by chunk.
bool LinkModel::is_later(const Event& a, const Event& b) const {
  if (a.transfer != b.transfer) return a.transfer > b.transfer;
  return packets_[a.packet].chunk > packets_[b.packet].chunk;
}

/// Sorts the events of one time. Two chunks of one transfer are rarely among them, so these are put right afterwards.
void LinkModel::sort_batch() {
  sort_by_transfer(batch_, scratch_);
  for (auto begin = batch_.begin(); begin != batch_.end();) {
    const auto end = std::find_if(begin, batch_.end(), [&](const Event& e) { return e.transfer != begin->transfer; });
    if (end - begin > 1) std::sort(begin, end, [this](const Event& a, const Event& b) { return is_later(b, a); });
    begin = end;
  }
}

Event LinkModel::next_of_now(std::size_t& position) {
  const auto later = [this](const Event& a, const Event& b) { return is_later(a, b); };
  if (late_.empty() || (position < batch_.size() && !later(batch_[position], late_.front()))) return batch_[position++];
  std::ranges::pop_heap(late_, later);
  const Event event = late_.back();
  late_.pop_back();
  return event;
}

/// Sends the lane's next chunk when all it waits for is known, or lets the lane wait for what is not.
void LinkModel::hand_over(LaneIndex index) {
  const Lane& lane = lanes_[index];
  const Pieces pieces = chunking_.pieces(schedule_.transfers[lane.transfer.index()]);
  const ByteRange bytes = chunking_.chunk(pieces, lane.chunk);
  if (!find_ready_time(index, bytes)) return;
  if (lane.chunk == 0) progress_.start(lane.transfer, pieces.count, std::max<std::int64_t>(now_, 0));
  send(index, bytes.length(), lane.chunk + 1 == pieces.count);
}

bool LinkModel::find_ready_time(LaneIndex index, const ByteRange& bytes) {
  Lane& lane = lanes_[index];
  const Transfer& transfer = schedule_.transfers[lane.transfer.index()];
  const std::span<const Dependency> dependencies = dependencies_.of(lane.transfer);
  for (; lane.dependency < dependencies.size(); ++lane.dependency) {
    const Dependency dependency = dependencies[lane.dependency];
    const TransferId earlier = dependency.transfer();
    const std::uint32_t needed =
        chunking_.needed_chunk(schedule_.transfers[earlier.index()], transfer, bytes, lane.chunk);
    if (needed == no_chunk) continue;
    const bool departure = dependency.wait() == Wait::departure;
    const ChunkTimes times = progress_.look_up(earlier, needed);
    const std::int64_t time = departure ? times.departed : times.arrived;
    if (time == unknown_time) {
      lane.awaited_chunk = needed;
      lane.awaited = dependency.wait();
      lane.next_waiting = first_waiting_[earlier.index()];
      first_waiting_[earlier.index()] = index;
      return false;
    }
    if (time <= lane.ready) continue;
    lane.ready = time;
    if (history_ != nullptr) {
      history_->origin({lane.transfer, lane.chunk}, {{earlier, needed}, departure ? Cause::departure : Cause::arrival});
    }
  }
  return true;
}

void LinkModel::send(LaneIndex index, std::int64_t bytes, bool ends_transfer) {
  const Lane& lane = lanes_[index];
  const Path& path = network_.paths[schedule_.transfers[lane.transfer.index()].route.index()];
  if (history_ != nullptr) history_->ready({lane.transfer, lane.chunk}, lane.ready);
  std::uint32_t slot = 0;
  if (free_packets_.empty()) {
    slot = static_cast<std::uint32_t>(packets_.size());
    packets_.emplace_back();
  } else {
    slot = free_packets_.back();
    free_packets_.pop_back();
  }
  const std::int64_t asked = lane.ready + path.overhead;
  Packet& packet = packets_[slot];
  packet.bytes = bytes;
  packet.last_byte = asked;
  packet.travel = 0;
  packet.transfer = lane.transfer;
  packet.chunk = lane.chunk;
  packet.step = path.begin;
  packet.lane = index;
  packet.ends_transfer = ends_transfer;
  ask(asked, slot);
}

void LinkModel::ask(std::int64_t time, std::uint32_t packet) {
  const Event event{time, packets_[packet].transfer.value(), packet};
  if (time != now_) return queue_.push(event);
  late_.push_back(event);
  std::ranges::push_heap(late_, [this](const Event& a, const Event& b) { return is_later(a, b); });
}

/// Lets a chunk that is about to leave its sender wait while its lane is held (docs/simulator.md, "Back-pressure").
bool LinkModel::hold_back(std::uint32_t slot) {
  Packet& packet = packets_[slot];
  const Path& path = network_.paths[schedule_.transfers[packet.transfer.index()].route.index()];
  const std::int64_t held_until = lanes_[packet.lane].held_until;
  if (packet.step != path.begin || held_until <= now_) return false;
  packet.last_byte = held_until;
  ask(held_until, slot);
  return true;
}

void LinkModel::serve(std::uint32_t slot) {
  if (hold_back(slot)) return;
  ++events_;
  Packet& packet = packets_[slot];
  const ChunkId chunk{packet.transfer, packet.chunk};
  const Transfer& transfer = schedule_.transfers[chunk.transfer.index()];
  const Path& path = network_.paths[transfer.route.index()];
  const std::uint32_t step = packet.step++;
  Resource& resource = network_.resources[network_.steps[step]];

  const std::int64_t service_time = resource.service_time(packet.bytes);
  const std::int64_t entry = std::max(now_, resource.free_at);
  const std::int64_t leave = std::max(entry + service_time, packet.last_byte);
  resource.free_at = entry + service_time;
  resource.bytes += packet.bytes;
  resource.busy += service_time;
  packet.last_byte = leave + resource.latency;
  Lane& sender = lanes_[packet.lane];
  sender.held_until = std::max(sender.held_until, entry - packet.travel);
  packet.travel += resource.latency;
  if (history_ != nullptr) history_->entry(chunk, step - path.begin, path.steps_of(transfer), entry);

  // From here on the packet may move or be used again: what is still needed of it is copied.
  const std::int64_t last_byte = packet.last_byte;
  const LaneIndex lane = packet.lane;
  const bool ends_transfer = packet.ends_transfer;
  const bool at_end = step + 1 == path.end_of(transfer);
  if (at_end) {
    free_packets_.push_back(slot);
  } else {
    // A reduction needs the whole chunk; everything before it cuts through.
    ask(step + 1 == path.end ? last_byte : entry + resource.latency, slot);
  }
  if (step == path.first_link) depart(chunk, leave, lane, ends_transfer);
  if (at_end) arrive(chunk, last_byte, ends_transfer);
}

void LinkModel::depart(ChunkId chunk, std::int64_t time, LaneIndex index, bool ends_transfer) {
  progress_.times(chunk.transfer, chunk.chunk).departed = time;
  wake(chunk, Wait::departure);

  Lane& lane = lanes_[index];
  lane.ready = time;
  lane.dependency = 0;
  ++lane.chunk;
  if (ends_transfer) {
    lane.transfer = next_on_lane_[chunk.transfer.index()];
    lane.chunk = 0;
    if (lane.transfer.is_none()) return;
  }
  if (history_ != nullptr) history_->origin({lane.transfer, lane.chunk}, {chunk, Cause::lane});
  hand_over(index);
}

void LinkModel::arrive(ChunkId chunk, std::int64_t time, bool ends_transfer) {
  elapsed_ = std::max(elapsed_, time);
  progress_.times(chunk.transfer, chunk.chunk).arrived = time;
  wake(chunk, Wait::arrival);
  if (ends_transfer) progress_.finish(chunk.transfer, chunk.chunk + 1, time);
}

/// Lets the lanes go on that waited for this chunk of the transfer or an earlier one.
void LinkModel::wake(ChunkId chunk, Wait wait) {
  LaneIndex* link = &first_waiting_[chunk.transfer.index()];
  while (*link != no_lane) {
    const LaneIndex waiting = *link;
    Lane& lane = lanes_[waiting];
    if (lane.awaited == wait && lane.awaited_chunk <= chunk.chunk) {
      *link = lane.next_waiting;
      hand_over(waiting);
    } else {
      link = &lane.next_waiting;
    }
  }
}

}  // namespace espalier::sim
