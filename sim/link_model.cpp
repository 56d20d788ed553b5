#include "sim/link_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier::sim {
namespace {

/// How many events before its own a packet is fetched from memory; six hide a miss, more gain nothing.
constexpr std::size_t fetched_ahead = 6;

}  // namespace

LinkModel::LinkModel(const Network& network, const Conditions& conditions)
    : network_(network),
      profiles_(conditions.changes, network.link_count()),
      jitter_(conditions.jitter_ppm, conditions.seed),
      limit_(conditions),
      servers_(make_servers(network, profiles_)),
      ledger_(checks_invariants ? servers_.size() : 0) {}

Result<RunId> LinkModel::add(const Program& program, const RunOptions& options) {
  auto chunking = cut_into_chunks(program.schedule(), options);
  if (!chunking) return tl::unexpected(chunking.error());
  const auto work = check_workload(program, network_, *chunking, options.payload_ppm, max_chunk_steps);
  if (!work) return tl::unexpected(work.error());
  if (auto added = limit_.add(*work); !added) return tl::unexpected(added.error());
  if (next_order_ + program.schedule().transfers.size() > max_run_transfers) {
    return fail(ErrorCode::too_large, "all runs together have more than 2^32 transfers", "simulate fewer runs");
  }
  return add_checked(program, std::move(*chunking), options.payload_ppm, nullptr);
}

RunId LinkModel::add_checked(const Program& program, Chunking chunking, std::int32_t payload_ppm, History* history) {
  const RunId id(runs_.size());
  if (spare_.empty()) {
    runs_.push_back(std::make_unique<Run>());
  } else {
    runs_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  Run& run = *runs_.back();
  run.begin(id, program, std::move(chunking), next_order_);
  run.payload_ppm = static_cast<std::uint32_t>(payload_ppm);
  run.history = history;
  if (checks_invariants) ledger_.expect(program, run.chunking(), run.payload_ppm);
  next_order_ += static_cast<std::uint32_t>(program.schedule().transfers.size());
  return id;
}

void LinkModel::enter(RunId id, Rank rank, std::int64_t time) {
  ESPALIER_CHECK(time >= now_ && time <= latest_entry, "ranks enter now or later");
  Run* run = runs_[id.index()].get();
  ESPALIER_CHECK(run != nullptr, "ranks enter runs that are not over");
  if (run->is_aborted) return;
  run->enter(rank, time, ended_, [&](LaneIndex lane) { hand_over(*run, lane); });
  if (run->is_over()) let_go(*run);
}

void LinkModel::enter_all(RunId id, std::int64_t time) {
  ESPALIER_CHECK(time >= now_ && time <= latest_entry, "ranks enter now or later");
  Run* run = runs_[id.index()].get();
  ESPALIER_CHECK(run != nullptr, "ranks enter runs that are not over");
  if (run->is_aborted) return;
  run->enter_all(time, ended_, [&](LaneIndex lane) { hand_over(*run, lane); });
  if (run->is_over()) let_go(*run);
}

void LinkModel::abort(RunId id) {
  Run* run = runs_[id.index()].get();
  if (run == nullptr) return;
  run->is_aborted = true;
  balances_ = false;
  if (run->chunks_moving == 0) let_go(*run);
}

std::int64_t LinkModel::next_time() const {
  if (!ended_.empty()) return std::max<std::int64_t>(now_, 0);
  return queue_.empty() ? never : queue_.earliest();
}

void LinkModel::advance(std::vector<RankEnd>& ended) {
  if (!queue_.empty() && (ended_.empty() || queue_.earliest() == now_)) {
    queue_.pop_earliest(batch_);
    sort_batch();
    ESPALIER_CHECK(batch_.front().time >= now_, "time goes forward");
    now_ = batch_.front().time;
    in_batch_ = true;
    std::size_t position = 0;
    while (position < batch_.size() || !late_.empty()) {
      // Packets lie anywhere: fetch one ahead of its turn.
      if (position + fetched_ahead < batch_.size()) {
        __builtin_prefetch(&packets_[batch_[position + fetched_ahead].packet]);
      }
      serve(next_of_now(position).packet);
    }
    in_batch_ = false;
    if (checks_invariants && queue_.empty()) check_balance();
  }
  ended.insert(ended.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

std::vector<LinkUse> LinkModel::links() const {
  std::vector<LinkUse> uses;
  uses.reserve(network_.link_count());
  for (std::uint32_t i = 0; i < network_.link_count(); ++i) uses.push_back({servers_[i].bytes, {servers_[i].busy}});
  return uses;
}

/// With no chunk under way and no run half done, what was carried is what the schedules say.
void LinkModel::check_balance() const {
  const bool all_over = std::ranges::all_of(runs_, [](const auto& run) { return run == nullptr; });
  if (!all_over || !balances_) return;
  ESPALIER_CHECK(ledger_.balances(servers_), "resources carry exactly the bytes of the schedules");
}

/// Whether one of two events of the same time comes after the other: by transfer, then by chunk.
bool LinkModel::is_later(const Event& a, const Event& b) const {
  if (a.order != b.order) return a.order > b.order;
  return packets_[a.packet].chunk > packets_[b.packet].chunk;
}

/// Sorts the events of one time. Two chunks of one transfer are rarely among them, so these are put right afterwards.
void LinkModel::sort_batch() {
  sort_by_order(batch_, scratch_);
  for (auto begin = batch_.begin(); begin != batch_.end();) {
    const auto end = std::find_if(begin, batch_.end(), [&](const Event& e) { return e.order != begin->order; });
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
void LinkModel::hand_over(Run& run, LaneIndex index) {
  if (run.is_aborted) return;
  const Lane& lane = run.lane(index);
  const ByteRange bytes = run.chunking().chunk({lane.range, lane.chunks}, lane.chunk);
  if (!run.find_ready_time(index, bytes)) return;
  if (lane.chunk == 0) run.start_transfer(lane, std::max<std::int64_t>(now_, 0));
  send(run, index, bytes.length());
}

void LinkModel::send(Run& run, LaneIndex index, std::int64_t bytes) {
  const Lane& lane = run.lane(index);
  const Transfer& transfer = run.transfer(lane);
  const Path& path = run.program().path(transfer);
  if (run.history != nullptr) run.history->ready({lane.transfer, lane.chunk}, lane.ready);
  std::uint32_t slot = 0;
  if (free_packets_.empty()) {
    slot = static_cast<std::uint32_t>(packets_.size());
    packets_.emplace_back();
  } else {
    slot = free_packets_.back();
    free_packets_.pop_back();
  }
  ++run.chunks_moving;
  const std::int64_t asked = lane.ready + path.overhead;
  Packet& packet = packets_[slot];
  packet.run = &run;
  packet.path = &path;
  packet.bytes = bytes;
  packet.last_byte = asked;
  packet.travel = 0;
  packet.transfer = lane.transfer;
  packet.order = run.order(lane.transfer);
  packet.chunk = lane.chunk;
  packet.step = path.begin;
  packet.lane = index;
  packet.reduces = transfer.reduces != 0;
  packet.ends_transfer = lane.chunk + 1 == lane.chunks;
  ask(asked, slot);
}

void LinkModel::ask(std::int64_t time, std::uint32_t packet) {
  const Event event{time, packets_[packet].order, packet};
  if (time != now_ || !in_batch_) return queue_.push(event);
  late_.push_back(event);
  std::ranges::push_heap(late_, [this](const Event& a, const Event& b) { return is_later(a, b); });
}

/// Lets a chunk that is about to leave its sender wait while its lane is held (docs/simulator.md, "Back-pressure").
bool LinkModel::hold_back(std::uint32_t slot) {
  Packet& packet = packets_[slot];
  if (packet.step != packet.path->begin) return false;
  const std::int64_t held_until = packet.run->lane(packet.lane).held_until;
  if (held_until <= now_) return false;
  packet.last_byte = held_until;
  ask(held_until, slot);
  return true;
}

/// Lets a resource take a chunk at `entry`; returns when it is done with it.
std::int64_t LinkModel::serve_packet(Server& server, const Packet& packet, std::int64_t entry) {
  std::int64_t bytes = packet.bytes;
  if (packet.run->payload_ppm != whole_ppm && packet.step != packet.path->end) {
    bytes = on_the_wire(bytes, packet.run->payload_ppm);
  }
  std::int64_t duration = server.service_time(bytes);
  if (jitter_.is_on()) {
    duration += jitter_.extra(duration, packet.order, packet.chunk, packet.step - packet.path->begin);
  }
  return server.serve(entry, bytes, duration, profiles_);
}

/// A chunk that goes no further: its run was given up, or a link on its way has died.
void LinkModel::drop(std::uint32_t slot) {
  Run& run = *packets_[slot].run;
  free_packets_.push_back(slot);
  --run.chunks_moving;
  if (run.is_aborted && run.chunks_moving == 0) let_go(run);
}

void LinkModel::let_go(Run& run) { spare_.push_back(std::move(runs_[run.id().index()])); }

void LinkModel::serve(std::uint32_t slot) {
  if (packets_[slot].run->is_aborted) return drop(slot);
  if (hold_back(slot)) return;
  Packet& packet = packets_[slot];
  Run& run = *packet.run;
  const Path& path = *packet.path;
  Server& server = servers_[run.program().steps()[packet.step]];
  const std::int64_t entry = std::max(now_, server.free_at);
  const std::int64_t done = serve_packet(server, packet, entry);
  if (done == never) {
    balances_ = false;
    --run.chunks_moving;  // it stays where it is: nothing of it is asked any more
    free_packets_.push_back(slot);
    return;
  }
  ++events_;
  if (checks_invariants) {
    ledger_.serve(run.program().steps()[packet.step], entry, done);
    ESPALIER_CHECK(packet.step != path.end || entry >= packet.last_byte, "only what is there is added");
  }
  const std::uint32_t step = packet.step++;
  const std::int64_t leave = std::max(done, packet.last_byte);
  packet.last_byte = leave + server.latency;
  Lane& sender = run.lane(packet.lane);
  sender.held_until = std::max(sender.held_until, entry - packet.travel);
  packet.travel += server.latency;
  const std::uint32_t end = packet.reduces ? path.reduce_end : path.end;
  const ChunkId chunk{packet.transfer, packet.chunk};
  if (run.history != nullptr) run.history->service(chunk, step - path.begin, end - path.begin, entry, done);

  // From here on the packet may move or be used again: what is still needed of it is copied.
  const std::int64_t last_byte = packet.last_byte;
  const LaneIndex lane = packet.lane;
  const bool ends_transfer = packet.ends_transfer;
  const bool at_end = step + 1 == end;
  if (at_end) {
    free_packets_.push_back(slot);
    --run.chunks_moving;
  } else {
    // A reduction needs the whole chunk; everything before it cuts through.
    ask(step + 1 == path.end ? last_byte : entry + server.latency, slot);
  }
  const auto go = [&](LaneIndex next) { hand_over(run, next); };
  if (step == path.first_link) run.depart(chunk, lane, leave, ended_, go);
  if (!at_end) return;
  elapsed_ = std::max(elapsed_, last_byte);
  run.arrive(chunk, ends_transfer, last_byte, ended_, go);
  if (run.is_over()) let_go(run);
}

}  // namespace espalier::sim
