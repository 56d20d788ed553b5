#include "sim/fair/fair_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/core/history.h"
#include "sim/fair/fair_rates.h"

namespace espalier::sim {

FairModel::FairModel(const Network& network, const Conditions& conditions)
    : RunningModel(ModelKind::fair, network, conditions),
      changes_(conditions.changes),
      service_(network, conditions),
      shares_(scaled_capacities(network, service_.scale())),
      waits_(scaled_capacities(network, service_.scale()), is_disturbed(conditions)),
      usage_(network.link_count()) {
  std::ranges::stable_sort(changes_, {}, &RateChange::at);
}

void FairModel::note_added(const Run& run) {
  for (const Path& path : run.compiled().paths()) {
    longest_latency_ = std::max(longest_latency_, service_.latency(run.compiled(), path));
  }
  connections_[&run].assign(run.compiled().shares_resources() ? run.compiled().paths().size() : 0, {});
}

std::int64_t FairModel::next_time() const { return ended_.empty() ? next_moment() : std::max<std::int64_t>(now_, 0); }

std::int64_t FairModel::next_moment() const {
  std::int64_t time = never;
  if (!begins_.empty()) time = begins_.earliest();
  if (!ends_.empty()) time = std::min(time, ends_.earliest());
  // Rates that change while nothing moves are caught up with when something does.
  if (moving_ > 0 && next_change_ < changes_.size()) time = std::min(time, changes_[next_change_].at.count);
  return time;
}

void FairModel::advance(std::vector<RankEnd>& ended) {
  const std::int64_t moment = next_moment();
  if (moment != never && (ended_.empty() || moment == now_)) {
    now_ = moment;
    if (waits_.is_on()) settle_waits();
    in_moment_ = true;
    handle_moment();
    in_moment_ = false;
    change_rates();
    share();
  }
  // A sender learns that its last byte has left when the flow ends, one latency later.
  for (const RankEnd& end : ended_) ended.push_back({end.run, end.rank, std::max(end.time, now_)});
  ended_.clear();
}

std::vector<LinkUse> FairModel::links() const {
  std::vector<Work> carried(usage_.size());
  for (std::size_t i = 0; i < usage_.size(); ++i) carried[i] = usage_[i].work;
  for (const Flow& flow : flows_) {
    if (!flow.moves) continue;
    const Work done = flow.work - std::max<Work>(0, flow.left_at(now_));
    for (const std::uint32_t resource : resources_of(flow)) {
      if (resource < carried.size()) carried[resource] += done;
    }
  }
  std::vector<LinkUse> uses;
  for (std::uint32_t i = 0; i < usage_.size(); ++i) {
    const std::int64_t capacity = shares_.capacity(i);
    uses.push_back({usage_[i].bytes, {usage_[i].busy + (capacity == 0 ? 0 : divide_up(carried[i], capacity))}});
  }
  return uses;
}

/// Makes a flow of a chunk.
void FairModel::hand_over(Run& run, LaneIndex index) {
  if (run.is_aborted) return;
  const Lane& lane = run.lane(index);
  if (!run.find_ready_time(index)) return;
  if (run.history != nullptr) run.history->ready({lane.transfer, lane.chunk}, lane.ready);
  ++run.chunks_moving;
  const std::uint32_t slot = take_slot();
  prepare(flows_[slot], run, index, run.chunk_bytes(run.lane(index)));
  push_begin(std::max(flows_[slot].begin, now_), slot);
}

std::uint32_t FairModel::take_slot() {
  if (free_flows_.empty()) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t slot = free_flows_.back();
  free_flows_.pop_back();
  return slot;
}

void FairModel::prepare(Flow& flow, Run& run, LaneIndex index, std::int64_t payload) {
  const Lane& lane = run.lane(index);
  flow.run = &run;
  flow.path = &run.path(lane);
  flow.connection = run.compiled().shares(index) ? &connections_[&run][lane.route.index()] : nullptr;
  flow.next = no_flow;
  flow.transfer = lane.transfer;
  flow.chunk = {payload, on_the_wire(payload, run.payload_ppm), run.order(lane.transfer), lane.chunk};
  flow.lane = index;
  flow.reduces = lane.reduces;
  flow.ends_transfer = lane.chunk + 1 == lane.chunk_count;
  flow.work = service_.work(flow.chunk);
  flow.left = flow.work;
  flow.latency = service_.latency(run.compiled(), *flow.path);
  flow.taken = {};
  flow.asks = service_.source_step(run.compiled(), *flow.path) != FlowService::no_step;
  flow.begin = lane.ready + flow.path->overhead + (flow.asks ? 0 : flow.latency);
}

void FairModel::push_begin(std::int64_t time, std::uint32_t slot) {
  const Event event{time, flows_[slot].chunk.order, slot};
  if (time != now_ || !in_moment_) return begins_.set(slot, time);
  moment_.add(event, chunk_of());
}

void FairModel::handle_moment() {
  std::vector<Event>& batch = moment_.clear();
  for (FlowQueue* queue : {&begins_, &ends_}) {
    while (!queue->empty() && queue->earliest() == now_) {
      const FlowIndex slot = queue->first();
      queue->erase(slot);
      batch.push_back({now_, flows_[slot].chunk.order, slot});
    }
  }
  moment_.begin(chunk_of());
  while (!moment_.is_over()) {
    const std::uint32_t slot = moment_.next(chunk_of()).packet;
    if (flows_[slot].moves) {
      end(slot);
    } else if (flows_[slot].asks) {
      ask(slot);
    } else {
      begin(slot);
    }
  }
}

/// The source's processor handles it when it has handled all that asked before, which may be over by now: a departure
/// is known one latency later.
void FairModel::ask(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  if (flow.run->is_aborted) return end(slot);
  flow.asks = false;
  flow.handled = service_.handle(flow.run->compiled().steps()[flow.path->begin], flow.chunk, 0, flow.begin);
  flow.begin = flow.handled.done + flow.latency;
  push_begin(std::max(flow.begin, now_), slot);
}

void FairModel::begin(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.begin = now_;
  if (flow.run->is_aborted) return end(slot);
  if (flow.chunk.wire == 0) {
    take(flow);
    return end(slot);
  }
  if (waits_.is_on()) waits_.begin(slot, flow.run->id(), {flow.transfer, flow.chunk.chunk});
  if (flow.connection == nullptr || flow.connection->moving == no_flow) return move(slot);
  Connection& connection = *flow.connection;
  (connection.first == no_flow ? connection.first : flows_[connection.last].next) = slot;
  connection.last = slot;
}

/// The destination's processor handles it from when its bytes begin to flow, after all that came before.
void FairModel::take(Flow& flow) {
  const CompiledSchedule& compiled = flow.run->compiled();
  const std::uint32_t step = service_.destination_step(compiled, *flow.path);
  if (step == FlowService::no_step) return;
  flow.taken = service_.handle(compiled.steps()[step], flow.chunk, step - flow.path->begin, now_);
}

/// Its bytes flow from now on.
void FairModel::move(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  flow.moves = true;
  flow.since = now_;
  flow.rate = 0;
  take(flow);
  if (flow.connection != nullptr) flow.connection->moving = slot;
  ++moving_;
  shares_.add(slot, resources_of(flow));
}

/// The flow's bytes are there: the next one on its connection moves.
void FairModel::leave(std::uint32_t slot) {
  const Flow& flow = flows_[slot];
  shares_.remove(slot);
  if (waits_.is_on()) waits_.end(slot);
  --moving_;
  for (const std::uint32_t resource : resources_of(flow)) {
    if (resource >= usage_.size()) continue;
    usage_[resource].work += flow.work;
    usage_[resource].bytes += flow.chunk.wire;
  }
  if (flow.connection != nullptr) give_turn(*flow.connection);
}

void FairModel::give_turn(Connection& connection) {
  connection.moving = no_flow;
  while (connection.first != no_flow && connection.moving == no_flow) {
    const FlowIndex next = connection.first;
    connection.first = flows_[next].next;
    if (!flows_[next].run->is_aborted) {
      move(next);
    } else {
      // The run is not let go meanwhile: the flow that had the turn is still counted.
      if (waits_.is_on()) waits_.end(next);
      free_flows_.push_back(next);
      drop_chunk(*flows_[next].run);
    }
  }
}

void FairModel::end(std::uint32_t slot) {
  if (flows_[slot].moves) leave(slot);
  flows_[slot].moves = false;
  const Flow flow = flows_[slot];  // Its place may be taken below.
  free_flows_.push_back(slot);
  Run& run = *flow.run;
  if (run.is_aborted) return drop_chunk(run);
  --run.chunks_moving;
  events_ += flow.path->end - flow.path->begin;
  const bool is_added = flow.reduces && flow.path->reduce_end != flow.path->end;
  const std::int64_t taken = std::max(now_, flow.taken.done);
  FlowService::Served sum{taken, taken};
  if (is_added) {
    ++events_;
    sum = service_.reduce(run.compiled().steps()[flow.path->end], flow.chunk, flow.path->end - flow.path->begin, taken);
  }
  const std::int64_t arrival = sum.done;
  elapsed_ = std::max(elapsed_, arrival);
  const ChunkId chunk{flow.transfer, flow.chunk.chunk};
  if (run.history != nullptr) note(flow, sum);
  const auto go = [&](LaneIndex lane) { hand_over(run, lane); };
  // What a chunk waits for may have departed one latency ago: nothing later may be forgotten.
  run.set_past(std::max<std::int64_t>(now_ - longest_latency_, 0));
  run.depart(chunk, flow.lane, now_ - flow.latency, ended_, go);
  run.arrive(chunk, flow.ends_transfer, arrival, ended_, go);
  let_go_if_over(run);
}

/// Records a chunk's way: every link from when its bytes began to flow until the last one was there.
void FairModel::note(const Flow& flow, const FlowService::Served& sum) {
  const ChunkId chunk{flow.transfer, flow.chunk.chunk};
  const std::uint32_t way = flow.path->end - flow.path->begin;
  const bool is_added = flow.reduces && flow.path->reduce_end != flow.path->end;
  const std::uint32_t steps = is_added ? way + 1 : way;
  const auto record = [&](std::uint32_t step, std::int64_t begin, std::int64_t done) {
    flow.run->history->service(chunk, step, steps, begin, done);
  };
  for (std::uint32_t i = 0; i < way; ++i) record(i, flow.begin, now_);
  const CompiledSchedule& compiled = flow.run->compiled();
  if (service_.source_step(compiled, *flow.path) != FlowService::no_step) {
    record(0, flow.handled.begin, flow.handled.done);
  }
  if (service_.destination_step(compiled, *flow.path) != FlowService::no_step) {
    record(way - 1, flow.taken.begin, flow.taken.done);
  }
  if (is_added) record(way, sum.begin, sum.done);
}

void FairModel::settle_waits() {
  waits_.settle(now_, shares_, [&](FlowIndex slot) -> FlowProbe::Flow {
    const Flow& flow = flows_[slot];
    const Schedule& schedule = flow.run->compiled().schedule();
    const Transfer& transfer = schedule.transfers[flow.transfer.index()];
    const FlowIndex ahead = flow.moves ? slot : flow.connection->moving;
    return {resources_of(flow), flow.run->id(), schedule.src(transfer), schedule.dst(transfer), ahead};
  });
}

/// Gives every flow that is touched its new rate, and the moment at which it ends with it.
void FairModel::share() {
  for (const FlowIndex slot : shares_.solve()) {
    Flow& flow = flows_[slot];
    flow.left = flow.left_at(now_);
    flow.since = now_;
    flow.rate = shares_.rate(slot);
    if (flow.rate == 0) {
      ends_.erase(slot);
      continue;
    }
    if (flow.left != known_left_ || flow.rate != known_rate_) {
      known_left_ = flow.left;
      known_rate_ = flow.rate;
      const Work duration = (flow.left + flow.rate - 1) / flow.rate;
      known_time_ = static_cast<std::int64_t>(std::min<Work>(duration, never));
    }
    if (known_time_ > max_simulated_time - now_) {
      ends_.erase(slot);  // as good as dead
    } else {
      ends_.set(slot, now_ + known_time_);
    }
  }
}

void FairModel::change_rates() {
  for (; next_change_ < changes_.size() && changes_[next_change_].at.count <= now_; ++next_change_) {
    const RateChange& change = changes_[next_change_];
    close_usage(change.link.value());
    shares_.set_capacity(change.link.value(), scaled_capacity(network_, service_.scale(), change));
  }
}

/// Books what a link has carried at the rate that it has had until now.
void FairModel::close_usage(std::uint32_t link) {
  Work under_way = 0;
  shares_.for_each_on(link, [&](FlowIndex slot) {
    const Flow& flow = flows_[slot];
    under_way += flow.work - flow.left_at(now_);
  });
  Usage& usage = usage_[link];
  const std::int64_t capacity = shares_.capacity(link);
  if (capacity != 0) usage.busy += divide_up(usage.work + under_way, capacity);
  usage.work = -under_way;
}

}  // namespace espalier::sim
