#include "sim/link/link_model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace espalier::sim {
namespace {

/// How many events before its own a packet is fetched from memory.
constexpr std::size_t fetched_ahead = 6;

/// So many packets and their lanes stay in a cache anyway.
constexpr std::size_t min_fetched = 4096;

}  // namespace

LinkModel::LinkModel(const Network& network, const Conditions& conditions)
    : RunningModel(ModelKind::link, network, conditions),
      service_(network, conditions),
      audit_(checks_invariants ? service_.servers().size() : 0) {}

void LinkModel::note_added(const Run& run) {
  if (checks_invariants) audit_.expect(run.compiled(), run.chunking(), run.payload_ppm);
}

void LinkModel::set_deadline(RunId id, std::int64_t end, std::int64_t launch) {
  const Run& run = run_of(id);
  deadlines_.emplace(run.compiled(), run.chunking(), network_, run.payload_ppm, end);
  is_late_ = !deadlines_->can_begin(launch);
}

std::int64_t LinkModel::next_time() const {
  if (!ended_.empty()) return std::max<std::int64_t>(now_, 0);
  const std::int64_t next = queue_.empty() ? never : queue_.earliest();
  return lone_ ? std::max(now_, std::min(next, lone_->next_time())) : next;
}

/// All events of the earliest time.
void LinkModel::handle_next() {
  std::vector<Event>& batch = moment_.clear();
  queue_.pop_earliest(batch);
  fetch_upcoming();
  ESPALIER_CHECK(batch.front().time >= now_, "time goes forward");
  now_ = batch.front().time;
  moment_.begin(chunk_of());
  in_moment_ = true;
  while (!moment_.is_over()) {
    // Packets lie anywhere in memory.
    if (const Event* event = moment_.ahead(fetched_ahead)) __builtin_prefetch(&packets_[event->packet]);
    serve(moment_.next(chunk_of()).packet);
  }
  in_moment_ = false;
  if (checks_invariants && queue_.empty()) check_balance();
}

void LinkModel::advance(std::vector<RankEnd>& ended) {
  ++turn_;
  const bool is_later = ended_.empty();  // else what is known already is told first
  const std::int64_t now = is_later ? next_time() : now_;
  if (lone_ && is_later) end_lone_runs(now, ended);
  if (!queue_.empty() && queue_.earliest() == now) handle_next();
  ended.insert(ended.end(), ended_.begin(), ended_.end());
  if (lone_) {
    for (const RankEnd& end : ended_) lone_->note_end(end);
  }
  ended_.clear();
}

/// Packets, lanes and what is known of arrivals lie anywhere in memory: all of them are asked for before the first one
/// is needed.
void LinkModel::fetch_upcoming() const {
  if (packets_.size() < min_fetched) return;
  for (const Event& event : queue_.upcoming()) __builtin_prefetch(&packets_[event.packet]);
  for (const Event& event : queue_.following()) {
    const Packet& packet = packets_[event.packet];
    packet.run->fetch(packet.lane);
    if (packet.step + 1 == packet.end()) packet.run->fetch_arrival(packet.transfer);
  }
  for (const Event& event : queue_.imminent()) {
    const Packet& packet = packets_[event.packet];
    if (packet.step + 1 == packet.end()) packet.run->fetch_waiting(packet.transfer);
    if (packet.step == packet.path->first_link) packet.run->fetch_waits(packet.lane);
  }
}

/// With no chunk under way and no run half done, what was carried is what the schedules say.
void LinkModel::check_balance() const {
  if (has_runs() || !balances_) return;
  ESPALIER_CHECK(audit_.balances(service_.servers()), "resources carry exactly the bytes of the schedules");
}

void LinkModel::hand_over(Run& run, LaneIndex index) {
  if (run.is_aborted) return;
  if (run.find_ready_time(index)) send(run, index, run.chunk_bytes(run.lane(index)));
}

void LinkModel::send(Run& run, LaneIndex index, std::int64_t bytes) {
  const Lane& lane = run.lane(index);
  const Path& path = run.path(lane);
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
  packet.payload = bytes;
  packet.last_byte = asked;
  packet.travel = 0;
  packet.transfer = lane.transfer;
  packet.chunk = lane.chunk;
  packet.step = path.begin;
  packet.lane = index;
  packet.reduces = lane.reduces;
  packet.ends_transfer = lane.chunk + 1 == lane.chunk_count;
  ask(asked, slot);
}

void LinkModel::ask(std::int64_t time, std::uint32_t packet) {
  const Event event{time, packets_[packet].order(), packet};
  if (time != now_ || !in_moment_) return queue_.push(event);
  moment_.add(event, chunk_of());
}

/// Lets a chunk that is about to leave its sender wait while its lane is held (docs/simulator.md, "Back-pressure").
bool LinkModel::hold_back(std::uint32_t slot) {
  Packet& packet = packets_[slot];
  if (packet.step != packet.path->begin) return false;
  const std::int64_t held_until = packet.run->held_until(packet.lane);
  if (held_until <= now_) return false;
  packet.last_byte = held_until;
  if (packet.run->history != nullptr) packet.run->history->held({packet.transfer, packet.chunk}, packet.lane);
  ask(held_until, slot);
  return true;
}

void LinkModel::serve(std::uint32_t slot) {
  if (packets_[slot].run->is_aborted) {
    free_packets_.push_back(slot);
    return drop_chunk(*packets_[slot].run);
  }
  if (hold_back(slot)) return;
  Packet& packet = packets_[slot];
  Run& run = *packet.run;
  const Path& path = *packet.path;
  const std::uint32_t resource = run.compiled().steps()[packet.step];
  const ChunkInService served{packet.payload, on_the_wire(packet.payload, run.payload_ppm), packet.order(),
                              packet.chunk};
  const std::uint32_t step = packet.step++;
  const LinkService::Passage passage =
      service_.serve(resource, served, step - path.begin, step == path.end, now_, packet.last_byte);
  if (passage.done == never) {
    balances_ = false;
    free_packets_.push_back(slot);
    return drop_chunk(run);  // it stays where it is: nothing of it is asked any more
  }
  ++events_;
  if (checks_invariants) {
    audit_.serve(resource, passage.entry, passage.done);
    ESPALIER_CHECK(step != path.end || passage.entry >= packet.last_byte, "only what is there is added");
  }
  if (deadlines_ && !deadlines_->serve(resource, passage.entry, passage.done)) is_late_ = true;
  packet.last_byte = passage.last_byte;
  std::int64_t& held_until = run.held_until(packet.lane);
  held_until = std::max(held_until, passage.entry - packet.travel);
  if (run.history != nullptr) {
    run.history->hold_lane(packet.lane, {passage.entry - packet.travel, resource, packet.travel});
  }
  if (waits_.is_on()) waits_.served(resource, run, packet.transfer, passage.entry, passage.done);
  packet.travel += passage.head - passage.entry;
  const std::uint32_t end = packet.end();
  const ChunkId chunk{packet.transfer, packet.chunk};
  if (run.history != nullptr) {
    run.history->service(chunk, step - path.begin, end - path.begin, passage.entry, passage.done);
  }

  // From here on the packet may move or be used again: what is still needed of it is copied.
  const LaneIndex lane = packet.lane;
  const bool ends_transfer = packet.ends_transfer;
  const bool at_end = step + 1 == end;
  if (at_end) {
    free_packets_.push_back(slot);
    --run.chunks_moving;
  } else {
    // A reduction needs the whole chunk; everything before it cuts through.
    ask(step + 1 == path.end ? passage.last_byte : passage.head, slot);
  }
  const auto go = [&](LaneIndex next) { hand_over(run, next); };
  run.set_past(now_);
  if (step == path.first_link) run.depart(chunk, lane, passage.left, ended_, go);
  if (!at_end) return;
  elapsed_ = std::max(elapsed_, passage.last_byte);
  run.arrive(chunk, ends_transfer, passage.last_byte, ended_, go);
  let_go_if_over(run);
}

std::vector<LinkUse> LinkModel::links() const {
  std::vector<LinkUse> links = service_.uses(network_.link_count());
  if (lone_) lone_->add_uses(links);
  return links;
}

void LinkModel::remember_lone_runs() {
  if (!service_.is_uniform() || waits_.is_on()) return;
  lone_.emplace(network_, service_.servers().size());
}

/// Whether each rank gets something of every other, so that none is through before all have entered.
bool LinkModel::joins_all(const CompiledSchedule& compiled, const RunOptions& options) {
  const Collective& collective = compiled.schedule().collective;
  const bool is_of_all = collective.kind == CollectiveKind::all_gather ||
                         collective.kind == CollectiveKind::all_reduce ||
                         collective.kind == CollectiveKind::reduce_scatter;
  constexpr std::int64_t elements = 64;  // For every rank: no part of the message is empty.
  return is_of_all && collective.shares.empty() &&
         options.size.count >= elements * collective.rank_count * options.element_size;
}

bool LinkModel::put_aside(RunId run, const CompiledSchedule& compiled, const RunOptions& options) {
  if (!lone_) return false;
  lone_->put_aside(run, compiled, options, joins_all(compiled, options));
  return true;
}

/// The first rank of a run enters, whose resources others may be on. Whether it is not simulated.
bool LinkModel::join_group(RunId run, const CompiledSchedule& compiled, std::int64_t time) {
  const auto met = lone_->groups_met(compiled, time, service_.servers());
  if (met && lone_->may_join(*met)) {
    LoneRuns::Replay rest;
    const bool is_simulated = lone_->join(run, *met, now_, rest);
    replay(rest);
    return !is_simulated;
  }
  for (const LoneRuns::GroupId group : lone_->groups_past(compiled, time)) replay(lone_->give_up_group(group));
  take_back(run);
  return false;
}

bool LinkModel::enter_aside(RunId run, Rank rank, std::int64_t time) {
  const LoneRuns::Lone* const lone = lone_ ? lone_->find(run) : nullptr;
  if (lone == nullptr) return false;
  const bool moves_now = !lone->is_message || lone->entered > 0;
  if (moves_now && lone->group == LoneRuns::no_group && !join_group(run, *lone->member.compiled, time)) return false;
  lone_->enter({run, rank, time, now_, turn_});
  return true;
}

/// Runs that were put aside are simulated, up to what happened so far. Nobody met them until now.
void LinkModel::replay(const LoneRuns::Replay& replay) {
  std::map<RunId, Run*> runs;
  for (const auto& [id, compiled] : replay.runs) runs[id] = &begin_aside(id, *compiled);
  if (replay.entries.empty()) return;
  const std::int64_t now = now_;
  EventQueue others;
  std::vector<RankEnd> ended_of_others;
  std::swap(queue_, others);
  std::swap(ended_, ended_of_others);
  now_ = std::min(now, replay.entries.front().time - 1);
  const auto handle_until = [&](std::int64_t time) {
    while (!queue_.empty() && queue_.earliest() <= time) handle_next();
  };
  std::uint64_t turn = replay.entries.front().turn;
  for (const LoneRuns::Entry& entry : replay.entries) {
    if (std::exchange(turn, entry.turn) != entry.turn) handle_until(entry.now);
    Run& run = *runs.at(entry.run);
    run.enter(entry.rank, entry.time, ended_, [&](LaneIndex lane) { hand_over(run, lane); });
    let_go_if_over(run);
  }
  if (turn != turn_) handle_until(now);
  std::vector<Event> batch;
  while (!queue_.empty()) {
    queue_.pop_earliest(batch);
    for (const Event& event : batch) others.push(event);
  }
  now_ = now;
  std::swap(queue_, others);
  const auto is_told = [&](const RankEnd& end) {
    return std::ranges::find(replay.told, std::pair(end.run, end.rank)) != replay.told.end();
  };
  std::erase_if(ended_, is_told);
  ended_.insert(ended_.begin(), ended_of_others.begin(), ended_of_others.end());
}

/// Ranks that are through now of runs which are not simulated; and what these do begins to be simulated where that is
/// not known.
void LinkModel::end_lone_runs(std::int64_t time, std::vector<RankEnd>& ended) {
  now_ = std::max(now_, time);
  std::vector<RunId> over;
  std::vector<LoneRuns::GroupId> unknown;
  lone_->take_ends(time, ended, over, unknown);
  for (const RunId run : over) forget_aside(run);
  for (const LoneRuns::GroupId group : unknown) replay(lone_->watch(group));
}

}  // namespace espalier::sim
