#include "scenario/run/runner.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/random.h"
#include "sim/link/remembering_model.h"

namespace espalier::scenario {
namespace {

constexpr std::int64_t whole_ppm = 1'000'000;
constexpr std::size_t progress_mask = (std::size_t{1} << 14U) - 1;

/// Calls of a job are the same again and again. What others send is not over when the job is, and what is recorded is
/// simulated.
std::unique_ptr<sim::Model> make_model_of(const RunSettings& settings, const sim::Network& network,
                                          const Disturbances& disturbances, const Recording* recording) {
  const bool remembers = recording == nullptr && disturbances.background.empty();
  return remembers ? sim::make_remembering_model(settings.model, network, disturbances.conditions)
                   : sim::make_model(settings.model, network, disturbances.conditions);
}

}  // namespace

Runner::Runner(const Job& job, const Topology& topology, const Disturbances& disturbances, const RunSettings& settings,
               Recording* recording)
    : job_(job),
      topology_(topology),
      disturbances_(disturbances),
      settings_(settings),
      recording_(recording),
      network_(topology, settings.endpoints.engines()),
      model_(make_model_of(settings, network_, disturbances, recording)),
      plans_(topology, network_, settings.paths),
      alone_(settings.model, network_),
      background_(topology, disturbances, plans_, *model_, settings.endpoints.payload_ppm),
      parts_(job),
      chunk_(settings.chunk),
      unfinished_(job.tasks().size()),
      calls_(job.calls().size()),
      part_entered_(parts_.count(), false),
      part_ended_(parts_.count(), false),
      compute_ppm_(topology.rank_count(), whole_ppm),
      starts_(topology.rank_count(), 0),
      clock_(topology.rank_count(), job.calls().size()) {
  if (disturbances.detection) notices_ = find_notices(disturbances.conditions, *disturbances.detection);
  for (const Straggler& straggler : disturbances.stragglers) {
    compute_ppm_[straggler.rank.index()] = straggler.compute_ppm;
    starts_[straggler.rank.index()] = straggler.start.count;
  }
  if (settings.slowed_ppm > 0) slowed_.emplace(topology.rank_count(), job.tasks().size(), settings.slowed_ppm);
  report_.tasks.resize(job.tasks().size());
  report_.calls.resize(job.calls().size());
  if (recording_ == nullptr) return;
  recording_->runs.assign(parts_.count(), sim::RunId());
  recording_->roots.assign(parts_.count(), Rank());
  if (!recording_->probes.empty()) model_->probe(recording_->probes);
}

void Runner::prepare_tasks() {
  const std::size_t count = job_.tasks().size();
  pending_.resize(count);
  follower_begins_.assign(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto after = job_.after(TaskId(i));
    pending_[i] = static_cast<std::uint32_t>(after.size());
    for (const TaskId before : after) ++follower_begins_[before.index() + 1];
  }
  for (std::size_t i = 0; i < count; ++i) follower_begins_[i + 1] += follower_begins_[i];
  std::vector<std::uint32_t> next(follower_begins_.begin(), follower_begins_.end() - 1);
  followers_.resize(follower_begins_.back());
  for (std::size_t i = 0; i < count; ++i) {
    for (const TaskId before : job_.after(TaskId(i))) followers_[next[before.index()]++] = TaskId(i);
  }
}

void Runner::prepare_streams() {
  const auto key_of = [](const Task& task) { return (std::uint64_t{task.rank.value()} << 16U) | task.stream; };
  std::vector<std::uint64_t> keys;
  for (const Task& task : job_.tasks()) {
    if (task.stream != no_stream) keys.push_back(key_of(task));
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  streams_.resize(keys.size());
  stream_of_.reserve(job_.tasks().size());
  for (const Task& task : job_.tasks()) {
    stream_of_.push_back(static_cast<std::uint32_t>(std::ranges::lower_bound(keys, key_of(task)) - keys.begin()));
  }
}

void Runner::make_ready(TaskId task, std::int64_t time) {
  const std::int64_t start = starts_[job_.task(task).rank.index()];
  if (time < start) {
    timers_.push({start, TimerKind::task_ready, task.value()});
    return;
  }
  if (job_.task(task).stream == no_stream) {
    streamless_.push_back(task);
    return;
  }
  const std::uint32_t index = stream_of_[task.index()];
  Stream& stream = streams_[index];
  stream.ready.push_back({time, task});
  std::ranges::push_heap(stream.ready, std::greater<>());
  if (stream.is_listed) return;
  stream.is_listed = true;
  listed_.push_back(index);
}

Result<JobReport> Runner::run() {
  prepare_tasks();
  prepare_streams();
  if (auto prepared = prepare_calls(); !prepared) return tl::unexpected(prepared.error());
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i] == 0) make_ready(TaskId(i), 0);
  }
  for (std::size_t i = 0; i < notices_.size(); ++i) {
    timers_.push({notices_[i].time, TimerKind::notice, static_cast<std::uint32_t>(i)});
  }
  if (auto started = background_.start(timers_); !started) return tl::unexpected(started.error());
  if (auto started = start_listed(0); !started) return tl::unexpected(started.error());
  while (unfinished_ > 0) {
    const std::int64_t timer = timers_.empty() ? sim::never : timers_.top().time;
    const std::int64_t event = model_->next_time();
    if (timer == sim::never && event == sim::never) return tl::unexpected(explain_stuck());
    if (event <= timer) {
      hear_from_model();
      continue;
    }
    now_ = timer;
    model_->pass(now_);
    while (!timers_.empty() && timers_.top().time == now_) {
      const Timer next = timers_.top();
      timers_.pop();
      if (auto handled = handle(next); !handled) return tl::unexpected(handled.error());
    }
    if (taken_ < report_.replannings.size()) {
      if (auto restarted = restart_calls(now_); !restarted) return tl::unexpected(restarted.error());
    }
    if (auto started = start_listed(now_); !started) return tl::unexpected(started.error());
  }
  return finish();
}

void Runner::hear_from_model() {
  heard_.clear();
  model_->advance(heard_);
  for (const sim::RankEnd& end : heard_) {
    const Owner& owner = owners_[end.run.index()];
    if (owner.call.is_none()) {
      background_.end_reached();
      continue;
    }
    const std::size_t part = parts_.index(owner.call, end.rank);
    if (part_ended_[part]) continue;  // it was through before the call was begun again
    part_ended_[part] = true;
    if (recording_ != nullptr) recording_->runs[part] = end.run;
    if (++calls_[owner.call.index()].ended == parts_.tasks(owner.call).size()) open_call(owner.call);
    const std::int64_t time = end_of_part(owner.call, end);
    if (time == sim::never) continue;
    timers_.push({time, TimerKind::task_end, parts_.tasks(owner.call)[end.rank.index()].value()});
  }
}

Result<void> Runner::handle(const Timer& timer) {
  switch (timer.kind) {
    case TimerKind::task_end: {
      const TaskId id(timer.id);
      const Task& task = job_.task(id);
      if (slowed_ && task.kind == TaskKind::compute && !slowed_->ends(id, task.rank, timer.time)) break;
      end_task(id, timer.time);
      break;
    }
    case TimerKind::task_ready: make_ready(TaskId(timer.id), timer.time); break;
    case TimerKind::notice: take_notice(notices_[timer.id]); break;
    case TimerKind::flow: {
      const auto run = background_.send(timer.id, timer.time, timers_);
      if (!run) return tl::unexpected(run.error());
      own(*run, CallId());
      break;
    }
  }
  return {};
}

Result<void> Runner::start_listed(std::int64_t time) {
  std::ranges::sort(streamless_);
  for (const TaskId task : streamless_) {
    if (auto started = start(task, time); !started) return started;
  }
  streamless_.clear();
  std::ranges::sort(listed_);
  for (const std::uint32_t index : listed_) {
    Stream& stream = streams_[index];
    stream.is_listed = false;
    if (!stream.running.is_none() || stream.ready.empty()) continue;
    std::ranges::pop_heap(stream.ready, std::greater<>());
    stream.running = stream.ready.back().task;
    stream.ready.pop_back();
    if (auto started = start(stream.running, time); !started) return started;
  }
  listed_.clear();
  return {};
}

std::int64_t Runner::compute_time(TaskId id) const {
  const Task& task = job_.task(id);
  __int128 time = static_cast<__int128>(task.duration) * compute_ppm_[task.rank.index()] / whole_ppm;
  if (disturbances_.compute_jitter_ppm > 0) {
    Random random(disturbances_.seed + std::uint64_t{id.value()} * 0x9E3779B97F4A7C15U);
    time += time *
            static_cast<__int128>(random.below(static_cast<std::uint64_t>(disturbances_.compute_jitter_ppm) + 1)) /
            whole_ppm;
  }
  return static_cast<std::int64_t>(std::min<__int128>(time, sim::never));
}

tl::unexpected<Error> Runner::past_the_end(TaskId id) const {
  return fail(ErrorCode::too_large, job_.describe(id, topology_) + " is past 26 days of simulated time",
              "check durations and rates");
}

Result<void> Runner::start(TaskId id, std::int64_t time) {
  const Task& task = job_.task(id);
  report_.tasks[id.index()].start = time;
  if (task.kind == TaskKind::call) return enter(id, time);
  if (task.kind == TaskKind::compute) clock_.compute(task.rank, time, 1);
  const std::int64_t duration = task.kind == TaskKind::compute ? compute_time(id) : task.duration;
  if (duration > sim::latest_entry - time) return past_the_end(id);
  const bool is_slowed = slowed_ && task.kind == TaskKind::compute;
  timers_.push(
      {is_slowed ? slowed_->begin(id, task.rank, time, duration) : time + duration, TimerKind::task_end, id.value()});
  return {};
}

/// The rank of a call's task begins or ends to move data, which may slow what it computes.
void Runner::move_beside(TaskId id, std::int64_t time, int change) {
  const Task& task = job_.task(id);
  if (slowed_ && task.stream == settings_.slowing_stream) slowed_->move(task.rank, time, change, timers_);
}

void Runner::free_stream(TaskId id) {
  if (job_.task(id).stream == no_stream) return;
  const std::uint32_t index = stream_of_[id.index()];
  Stream& stream = streams_[index];
  stream.running = TaskId();
  if (stream.is_listed) return;
  stream.is_listed = true;
  listed_.push_back(index);
}

void Runner::end_task(TaskId id, std::int64_t time) {
  const Task& task = job_.task(id);
  report_.tasks[id.index()].end = time;
  if (task.kind == TaskKind::compute) {
    clock_.compute(task.rank, time, -1);
  } else if (task.kind == TaskKind::call) {
    CallTime& call = report_.calls[task.call.index()];
    moves(task.call) ? clock_.end_moving(task.rank, time, task.call) : clock_.waiting(task.rank, time, -1);
    if (moves(task.call)) move_beside(id, time, -1);
    call.end = std::max(call.end, job_.call(task.call).is_eager ? calls_[task.call.index()].arrival : time);
  }
  for (std::uint32_t i = follower_begins_[id.index()]; i < follower_begins_[id.index() + 1]; ++i) {
    if (--pending_[followers_[i].index()] == 0) make_ready(followers_[i], time);
  }
  free_stream(id);
  --unfinished_;
  if (settings_.on_progress && (unfinished_ & progress_mask) == 0) {
    settings_.on_progress(job_.tasks().size() - unfinished_);
  }
}

Result<JobReport> Runner::finish() {
  for (const TaskTime& task : report_.tasks) report_.elapsed.count = std::max(report_.elapsed.count, task.end);
  report_.ranks = clock_.finish(report_.elapsed.count);
  for (std::size_t i = 0; i < report_.calls.size(); ++i) report_.calls[i].exposed = clock_.exposed_of_calls()[i];
  report_.links = model_->links();
  report_.events = model_->events();
  if (recording_ != nullptr) {
    recording_->blames = model_->blames();
    for (const Owner& owner : owners_) recording_->calls.push_back(owner.call);
  }
  report_.flows = background_.flows();
  report_.chunk = chunk_;
  report_.plans = plans_.plan_count();
  report_.shapes = plans_.shape_count();
  for (std::size_t i = 0; settings_.compare_with_alone && i < calls_.size(); ++i) {
    if (calls_[i].plan == nullptr) continue;
    const auto alone = alone_.find(*calls_[i].plan, options_of(job_.calls()[i], *calls_[i].plan->planned));
    if (!alone) return tl::unexpected(alone.error());
    report_.calls[i].alone = *alone;
  }
  return std::move(report_);
}

Result<JobReport> run_job(const Job& job, const Topology& topology, const Disturbances& disturbances,
                          const RunSettings& settings, Recording* recording) {
  return Runner(job, topology, disturbances, settings, recording).run();
}

}  // namespace espalier::scenario
