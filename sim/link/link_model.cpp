#include "sim/link/link_model.h"

#include <algorithm>
#include <span>
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
  return lone_ ? std::min({next, lone_->next_end(), lone_->next_entry()}) : next;
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
  const bool is_later = ended_.empty();  // else what is known already is told first
  const std::int64_t now = is_later ? next_time() : now_;
  if (lone_ && is_later) {
    begin_entering(now);
    end_lone_runs(now);
  }
  if (!queue_.empty() && queue_.earliest() == now) handle_next();
  ended.insert(ended.end(), ended_.begin(), ended_.end());
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
  lone_.emplace(service_.servers().size());
  scratch_ = std::make_unique<LinkModel>(network_, Conditions{});
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
  lone_->put_aside(run, compiled, joins_all(compiled, options));
  options_[run] = options;
  return true;
}

/// The first rank of a run enters: takes others back that it may meet. Whether it meets nobody.
bool LinkModel::come_first(RunId run, const CompiledSchedule& compiled, std::int64_t time) {
  for (const RunId holder : lone_->holders_past(compiled, time)) take_back(holder);
  const auto is_free = [&](std::uint32_t resource) { return service_.server(resource).free_at <= time; };
  if (lone_->are_used(compiled) || !std::ranges::all_of(lone_->resources_of(compiled), is_free)) return false;
  lone_->hold(run, compiled, time);
  return true;
}

bool LinkModel::enter_aside(RunId run, Rank rank, std::int64_t time) {
  LoneRuns::Aside* const aside = lone_ ? lone_->find(run) : nullptr;
  if (aside == nullptr) return false;
  const CompiledSchedule& compiled = *aside->compiled;
  // Where the ways in which ranks come never repeat, memory is not spent on them.
  constexpr std::size_t max_known = 2'048;
  const bool may_wait = aside->waits && known_alone_.size() < max_known;
  const bool stays = aside->entered.empty() ? come_first(run, compiled, time) : aside->entry == time || may_wait;
  if (!stays) {
    take_back(run);
    return false;
  }
  aside->entered.emplace_back(rank, time - aside->entry);
  if (aside->entered.size() == compiled.schedule().collective.rank_count) {
    const LoneRun& known = know_alone(*aside, options_.at(run));
    if (known.ends.front().first < aside->entered.back().second) {
      take_back(run);
      return true;
    }
    lone_->know(run, known);
  }
  return true;
}

/// What a run does alone, on an idle network.
const LoneRun& LinkModel::know_alone(const LoneRuns::Aside& aside, const RunOptions& options) {
  const CompiledSchedule& compiled = *aside.compiled;
  // Who enters at one moment does so in any order.
  auto entered = aside.entered;
  std::ranges::sort(entered);
  const LoneKey key{
      &compiled, options.size.count, options.chunk.count, options.element_size, options.payload_ppm, options.ahead,
      entered};
  const auto [at, is_new] = known_alone_.try_emplace(key);
  LoneRun& known = at->second;
  if (!is_new) return known;
  LinkModel& model = *scratch_;
  const std::vector<std::uint32_t>& resources = lone_->resources_of(compiled);
  for (const std::uint32_t resource : resources) {
    const Server& server = model.service_.server(resource);
    known.uses.push_back({resource, {-server.bytes, {-server.busy}}});
  }
  const std::uint64_t events_before = model.events_;
  const std::int64_t entry = std::max<std::int64_t>(model.now_ + 1, model.elapsed_);
  const auto run = model.add(compiled, options);
  ESPALIER_CHECK(run.has_value(), "what was added before can be added again");
  std::ranges::stable_sort(entered, {}, &std::pair<Rank, std::int64_t>::second);
  for (const auto& [rank, later] : entered) model.enter(*run, rank, entry + later);
  std::vector<RankEnd> ended;
  while (model.next_time() != never) model.advance(ended);
  for (const RankEnd& end : ended) known.ends.emplace_back(end.time - entry, end.rank);
  ESPALIER_CHECK(known.ends.size() == compiled.schedule().collective.rank_count, "a run alone ends");
  std::ranges::sort(known.ends);
  for (LoneRun::Use& use : known.uses) {
    const Server& server = model.service_.server(use.resource);
    use.use.bytes += server.bytes;
    use.use.busy.count += server.busy;
  }
  known.events = model.events_ - events_before;
  return known;
}

/// A run that was put aside is simulated, up to what happened so far. Nobody met it until now.
void LinkModel::take_back(RunId id) {
  const LoneRuns::Aside aside = lone_->take_back(id);
  options_.erase(id);
  Run& run = begin_aside(id, *aside.compiled);
  const auto go = [&](LaneIndex lane) { hand_over(run, lane); };
  if (aside.entered.empty()) return;
  const std::int64_t now = now_;
  EventQueue others;
  std::vector<RankEnd> ended_of_others;
  std::swap(queue_, others);
  std::swap(ended_, ended_of_others);
  now_ = std::min(now, aside.entry - 1);
  for (const auto& [rank, later] : aside.entered) run.enter(rank, aside.entry + later, ended_, go);
  while (!queue_.empty() && queue_.earliest() <= now) handle_next();
  std::vector<Event> batch;
  while (!queue_.empty()) {
    queue_.pop_earliest(batch);
    for (const Event& event : batch) others.push(event);
  }
  now_ = now;
  std::swap(queue_, others);
  const auto is_told = [&](const RankEnd& end) {
    if (aside.known == nullptr) return false;
    const auto told = std::span(aside.known->ends).first(aside.ended);
    return std::ranges::find(told, end.rank, &std::pair<std::int64_t, Rank>::second) != told.end();
  };
  std::erase_if(ended_, is_told);
  ended_.insert(ended_.begin(), ended_of_others.begin(), ended_of_others.end());
}

/// Runs some of whose ranks are missing at the moment when the others enter.
void LinkModel::begin_entering(std::int64_t time) {
  for (const RunId run : lone_->entering_by(time)) take_back(run);
}

/// Ranks of runs that were put aside which are through now.
void LinkModel::end_lone_runs(std::int64_t time) {
  now_ = std::max(now_, time);
  over_.clear();
  lone_->take_ends(time, ended_, over_);
  for (const RunId run : over_) {
    forget_aside(run);
    options_.erase(run);
  }
}

}  // namespace espalier::sim
