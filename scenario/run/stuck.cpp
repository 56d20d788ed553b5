// What a job that does not go on waits for.

#include <fmt/format.h>

#include <algorithm>

#include "base/format_units.h"
#include "scenario/run/runner.h"

namespace espalier::scenario {
namespace {

/// The last change of the link up to a moment, when that made it dead.
std::optional<Picoseconds> dead_since(const sim::Conditions& conditions, LinkId link, std::int64_t time) {
  const sim::RateChange* last = nullptr;
  for (const sim::RateChange& change : conditions.changes) {
    if (change.link == link && change.at.count <= time && (last == nullptr || change.at >= last->at)) last = &change;
  }
  if (last == nullptr || last->rate_ppm > 0) return std::nullopt;
  return last->at;
}

}  // namespace

bool Runner::is_running(TaskId task) const {
  return report_.tasks[task.index()].start >= 0 && report_.tasks[task.index()].end < 0;
}

std::string Runner::call_text(CallId call) const {
  return fmt::format("call {} '{}'", call.value(), job_.label(job_.call(call).label));
}

std::optional<Error> Runner::explain_dead_link() const {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallState& state = calls_[i];
    if (state.run.is_none() || state.ended == parts_.tasks(CallId(i)).size()) continue;
    for (const LinkId link : state.plan->links) {
      const auto since = dead_since(disturbances_.conditions, link, sim::never);
      if (!since) continue;
      const auto tasks = parts_.tasks(CallId(i));
      const auto waits = std::ranges::find_if(tasks, [&](TaskId task) { return report_.tasks[task.index()].end < 0; });
      const Rank rank = job_.task(waits == tasks.end() ? tasks.front() : *waits).rank;
      return Error{ErrorCode::infeasible,
                   fmt::format("{} cannot end: the link {} is dead since {}, and {} waits for it", call_text(CallId(i)),
                               topology_.link_name(link), format_latency(*since), topology_.rank_name(rank)),
                   "with 'replan: {detection: 10 ms}' calls are planned anew around links that die"};
    }
  }
  return std::nullopt;
}

/// The call that a task which is not over waits behind: itself, or what runs before it.
TaskId Runner::running_before(TaskId task) const {
  for (std::size_t steps = 0; steps <= job_.tasks().size(); ++steps) {
    const TaskTime& time = report_.tasks[task.index()];
    if (time.start >= 0) return task;
    if (pending_[task.index()] == 0) return streams_[stream_of_[task.index()]].running;
    for (const TaskId before : job_.after(task)) {
      if (report_.tasks[before.index()].end >= 0) continue;
      task = before;
      break;
    }
  }
  return task;
}

Error Runner::explain_circle(CallId first) const {
  struct Link {
    TaskId waits;    ///< Takes part in a call
    TaskId missing;  ///< in which this one does not yet.
  };
  std::vector<Link> chain;
  std::vector<bool> seen(job_.tasks().size(), false);
  const auto entered = std::ranges::find_if(parts_.tasks(first), [&](TaskId task) { return is_running(task); });
  TaskId at = *entered;
  while (!at.is_none() && !seen[at.index()]) {
    seen[at.index()] = true;
    const auto tasks = parts_.tasks(job_.task(at).call);
    const auto missing =
        std::ranges::find_if(tasks, [&](TaskId task) { return report_.tasks[task.index()].start < 0; });
    if (missing == tasks.end()) break;
    chain.push_back({at, *missing});
    at = running_before(*missing);
  }
  const auto begin = std::ranges::find(chain, at, &Link::waits);
  if (begin != chain.end()) chain.erase(chain.begin(), begin);
  constexpr std::size_t max_shown = 4;
  std::string text = "the job is stuck: ";
  for (std::size_t i = 0; i < std::min(chain.size(), max_shown); ++i) {
    text += fmt::format("{}{} is in {} and waits for {}", i == 0 ? "" : "; ", job_.describe(chain[i].waits, topology_),
                        call_text(job_.task(chain[i].waits).call), job_.describe(chain[i].missing, topology_));
  }
  const bool is_of_messages =
      std::ranges::all_of(chain, [&](const Link& link) { return job_.call(job_.task(link.waits).call).is_eager; });
  if (chain.size() > max_shown) text += fmt::format("; and {} more in the circle", chain.size() - max_shown);
  if (is_of_messages) {
    return {ErrorCode::infeasible, text,
            "each receive waits for a send that depends on a receive: one of them must depend on less"};
  }
  return {ErrorCode::infeasible, text,
          "all ranks of a group must come to its calls in one order, or on streams of their own"};
}

Error Runner::explain_stuck() const {
  if (auto dead = explain_dead_link()) return *std::move(dead);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const auto tasks = parts_.tasks(CallId(i));
    if (calls_[i].entered == 0 || calls_[i].entered == tasks.size()) continue;
    if (std::ranges::any_of(tasks, [&](TaskId task) { return is_running(task); })) return explain_circle(CallId(i));
  }
  return {ErrorCode::infeasible, fmt::format("the job is stuck: {} tasks never end", unfinished_), ""};
}

}  // namespace espalier::scenario
