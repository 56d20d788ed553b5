// What a Runner does with calls: plans them, lets ranks enter, begins them again around what died.

#include <algorithm>
#include <map>
#include <utility>

#include "scenario/run/runner.h"
#include "sim/core/history.h"

namespace espalier::scenario {

/// Plans all calls, and chooses the chunk of those that name none.
Result<void> Runner::prepare_calls() {
  struct Kind {
    const Plan* plan;
    Bytes size;
    auto operator<=>(const Kind&) const = default;
  };
  std::map<Kind, std::uint64_t> kinds;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (parts_.tasks(CallId(i)).size() == 1) continue;
    const auto plan = plans_.find(job_, CallId(i));
    if (!plan) return tl::unexpected(plan.error());
    calls_[i].plan = *plan;
    if (job_.calls()[i].chunk.count == 0) ++kinds[{*plan, job_.calls()[i].size}];
  }
  if (chunk_.count > 0 || kinds.empty()) return {};
  if (const auto& [plan, size] = kinds.begin()->first; kinds.size() == 1 && plan->planned->pacing) {
    chunk_ = plan->planned->pacing->chunk;
    return {};
  }
  chunk_ = planners::ChunkModel::smallest_chunk;
  for (const auto& [kind, count] : kinds) chunk_ = std::max(chunk_, kind.plan->planned->chunks.choose(kind.size));
  for (; chunk_ < max_message_size; chunk_.count *= 2) {
    double hops = 0;
    double least = 0;
    for (const auto& [kind, count] : kinds) {
      const planners::ChunkModel& chunks = kind.plan->planned->chunks;
      hops += static_cast<double>(count) * chunks.chunk_hops(kind.size, chunk_);
      least += static_cast<double>(count) * chunks.chunk_hops(kind.size, max_message_size);
    }
    if (hops <= std::max(static_cast<double>(settings_.max_chunk_hops), 1.2 * least)) break;
  }
  return {};
}

namespace {

/// As the plan was fastest alone; with other chunks, in the measure of these.
std::uint32_t rounds_ahead(const Call& call, const PlannedSchedule& planned, Bytes chunk) {
  if (!planned.pacing || planned.pacing->ahead == 0) return 0;
  return chunk == planned.pacing->chunk ? planned.pacing->ahead : planned.chunks.rounds_ahead(call.size, chunk);
}

}  // namespace

sim::RunOptions Runner::options_of(const Call& call, const PlannedSchedule& planned) const {
  const Bytes chunk = std::max(call.chunk.count > 0 ? call.chunk : chunk_, Bytes{call.element_size});
  return {.size = call.size,
          .chunk = chunk,
          .element_size = call.element_size,
          .payload_ppm = settings_.endpoints.payload_ppm,
          .ahead = rounds_ahead(call, planned, chunk)};
}

void Runner::own(sim::RunId run, CallId call) {
  if (owners_.size() <= run.index()) owners_.resize(run.index() + 1);
  owners_[run.index()] = {call, run};
}

Result<void> Runner::begin_run(CallId id) {
  CallState& state = calls_[id.index()];
  if (plans_.uses_dead(*state.plan)) {
    const auto around = plans_.find(job_, id);
    if (!around) return tl::unexpected(around.error());
    state.plan = *around;
  }
  const auto run = model_->add(*state.plan->compiled, options_of(job_.call(id), *state.plan->planned));
  if (!run) {
    Error error = run.error();
    error.message = call_text(id) + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  state.run = *run;
  own(*run, id);
  return is_recorded(*run) ? model_->record(*run) : Result<void>();
}

bool Runner::is_recorded(sim::RunId run) const {
  if (recording_ == nullptr) return false;
  if (recording_->finds_roots) return true;
  const auto first = recording_->opens.lower_bound({run, Rank(0)});
  return first != recording_->opens.end() && first->run == run;
}

/// A call's run is over or about to be given up: finds out what is asked for about the ranks that were through.
void Runner::open_call(CallId call) {
  const sim::RunId run = calls_[call.index()].run;
  if (!is_recorded(run)) return;
  const auto history = model_->take_history(run);
  const std::size_t ranks = parts_.tasks(call).size();
  const std::vector<Rank> roots = recording_->finds_roots ? sim::find_roots(*history) : std::vector<Rank>();
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t part = parts_.index(call, Rank(i));
    if (recording_->runs[part] != run) continue;
    if (!roots.empty()) recording_->roots[part] = roots[i];
    const RunPart opened{run, Rank(i)};
    if (recording_->opens.contains(opened)) recording_->paths[opened] = sim::find_critical_path(*history, Rank(i));
  }
}

TaskId Runner::sender_of(CallId call) const { return parts_.tasks(call)[job_.call(call).root.index()]; }

/// Whether data of a call can move: all ranks take part, or the sender of an eager message does.
bool Runner::moves(CallId call) const {
  if (job_.call(call).is_eager) return part_entered_[parts_.index(call, job_.call(call).root)];
  return calls_[call.index()].entered == parts_.tasks(call).size();
}

Result<void> Runner::enter(TaskId id, std::int64_t time) {
  const Task& task = job_.task(id);
  CallState& state = calls_[task.call.index()];
  CallTime& times = report_.calls[task.call.index()];
  const auto tasks = parts_.tasks(task.call);
  const Rank rank = job_.rank_in(job_.call(task.call).group, task.rank);
  const std::int64_t entry = time + settings_.endpoints.launch.count;
  if (entry > sim::latest_entry) return past_the_end(id);
  const bool moved = moves(task.call);
  part_entered_[parts_.index(task.call, rank)] = true;
  if (state.entered++ == 0) times.first_entry = entry;
  const bool moves_now = moves(task.call);
  if (!moved) times.last_entry = entry;
  moves_now ? clock_.begin_moving(task.rank, time, task.call) : clock_.waiting(task.rank, time, 1);
  if (moves_now) move_beside(id, time, 1);
  for (std::size_t i = 0; moves_now && !moved && i < tasks.size(); ++i) {
    if (tasks[i] == id || !part_entered_[parts_.index(task.call, Rank(i))]) continue;
    if (report_.tasks[tasks[i].index()].end >= 0) continue;
    clock_.waiting(job_.task(tasks[i]).rank, time, -1);
    clock_.begin_moving(job_.task(tasks[i]).rank, time, task.call);
    move_beside(tasks[i], time, 1);
  }
  if (tasks.size() == 1) {
    timers_.push({entry, TimerKind::task_end, id.value()});
    return {};
  }
  if (job_.call(task.call).is_eager) return enter_message(id, entry);
  if (state.run.is_none()) {
    if (auto begun = begin_run(task.call); !begun) return begun;
  }
  model_->enter(state.run, rank, entry);
  return {};
}

/// In the model both ends of an eager message take part when its sender does; the receiver is through when the message
/// has arrived and it takes part itself.
Result<void> Runner::enter_message(TaskId id, std::int64_t entry) {
  const CallId call = job_.task(id).call;
  CallState& state = calls_[call.index()];
  if (id != sender_of(call)) {
    if (state.arrival >= 0) timers_.push({std::max(entry, state.arrival), TimerKind::task_end, id.value()});
    return {};
  }
  if (auto begun = begin_run(call); !begun) return begun;
  model_->enter_all(state.run, entry);
  return {};
}

/// When a rank that the model is through with ends its task; `sim::never` while that depends on its taking part.
std::int64_t Runner::end_of_part(CallId call, const sim::RankEnd& end) {
  if (!job_.call(call).is_eager || end.rank == job_.call(call).root) return end.time;
  calls_[call.index()].arrival = end.time;
  if (!part_entered_[parts_.index(call, end.rank)]) return sim::never;
  const std::int64_t start = report_.tasks[parts_.tasks(call)[end.rank.index()].index()].start;
  return std::max(end.time, start + settings_.endpoints.launch.count);
}

void Runner::take_notice(const Notice& notice) {
  plans_.set_dead(notice.link, notice.is_dead);
  report_.replannings.push_back({notice.time, notice.link, notice.is_dead, 0});
}

/// Begins calls again whose plans use links that were found dead at this moment: each once, however many of its links
/// died together.
Result<void> Runner::restart_calls(std::int64_t time) {
  const std::size_t first = std::exchange(taken_, report_.replannings.size());
  const std::span found = std::span(report_.replannings).subspan(first);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallState& state = calls_[i];
    if (state.run.is_none() || state.ended == parts_.tasks(CallId(i)).size()) continue;
    const auto in_the_way = std::ranges::find_if(
        found, [&](const Replanning& replanning) { return replanning.is_dead && state.plan->uses(replanning.link); });
    if (in_the_way == found.end()) continue;
    ++in_the_way->restarted;
    if (auto restarted = restart(CallId(i), time); !restarted) return restarted;
  }
  return {};
}

Result<void> Runner::restart(CallId id, std::int64_t time) {
  CallState& state = calls_[id.index()];
  open_call(id);
  model_->abort(state.run);
  if (auto begun = begin_run(id); !begun) return begun;
  if (recording_ != nullptr) recording_->restarts[state.run] = time;
  ++report_.calls[id.index()].restarts;
  const auto tasks = parts_.tasks(id);
  const std::int64_t entry = time + settings_.endpoints.launch.count;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const bool takes_part = job_.call(id).is_eager || part_entered_[parts_.index(id, Rank(i))];
    if (takes_part) model_->enter(state.run, Rank(i), entry);
  }
  return {};
}

}  // namespace espalier::scenario
