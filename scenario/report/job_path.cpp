#include "scenario/report/job_path.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace espalier::scenario {
namespace {

class Walk {
 public:
  Walk(const Job& job, const Disturbances& disturbances, Picoseconds launch, const JobReport& report,
       const Recording& recording)
      : job_(job),
        detection_(disturbances.detection.value_or(Picoseconds{}).count),
        launch_(launch.count),
        report_(report),
        recording_(recording),
        parts_(job),
        is_on_path_(job.tasks().size(), false) {
    for (std::size_t i = 0; i < job.tasks().size(); ++i) by_stream_.emplace_back(i);
    std::ranges::sort(by_stream_, {}, [this](TaskId id) { return stream_key(id, time(id).end); });
  }

  std::vector<JobStep> run() {
    TaskId at(0);
    for (std::size_t i = 0; i < job_.tasks().size(); ++i) {
      if (time(TaskId(i)).end > time(at).end) at = TaskId(i);
    }
    std::int64_t until = time(at).end;
    while (true) {
      is_on_path_[at.index()] = true;
      at = job_.task(at).kind == TaskKind::call ? pass_call(at, until) : pass_alone(at, until);
      is_on_path_[at.index()] = true;
      until = time(at).start;
      const auto before = find_before(at, until);
      if (!before) break;
      at = *before;
    }
    add(JobUse::late, at, 0, until);
    std::ranges::reverse(steps_);
    return std::move(steps_);
  }

 private:
  [[nodiscard]] const TaskTime& time(TaskId id) const { return report_.tasks[id.index()]; }
  [[nodiscard]] std::tuple<Rank, std::uint16_t, std::int64_t, TaskId> stream_key(TaskId id, std::int64_t end) const {
    return {job_.task(id).rank, job_.task(id).stream, end, id};
  }

  void add(JobUse use, TaskId task, std::int64_t begin, std::int64_t end, RunPart part = {}) {
    if (begin < end) steps_.push_back({use, task, begin, end, part});
  }

  TaskId pass_alone(TaskId id, std::int64_t until) {
    add(job_.task(id).kind == TaskKind::compute ? JobUse::compute : JobUse::pause, id, time(id).start, until);
    return id;
  }

  /// Through a rank's part in a call to the rank with whose taking part its way began.
  TaskId pass_call(TaskId id, std::int64_t until) {
    const Task& task = job_.task(id);
    const Rank rank = job_.rank_in(job_.call(task.call).group, task.rank);
    const std::size_t part = parts_.index(task.call, rank);
    const sim::RunId run = recording_.runs[part];
    if (run.is_none()) {  // a group of one
      add(JobUse::launch, id, time(id).start, until);
      return id;
    }
    const bool is_eager = job_.call(task.call).is_eager;
    if (is_eager && time(id).start + launch_ >= until) {  // it lay there already when the receiver took part
      add(JobUse::launch, id, time(id).start, until);
      return id;
    }
    const Rank first = is_eager ? job_.call(task.call).root : recording_.roots[part];
    const TaskId root = parts_.tasks(task.call)[first.index()];
    const auto restart = recording_.restarts.find(run);
    const std::int64_t start = time(root).start;
    if (restart == recording_.restarts.end() || restart->second < start) {
      add(JobUse::call, id, start + launch_, until, {run, rank});
      add(JobUse::launch, root, start, start + launch_);
      return root;
    }
    add(JobUse::call, id, restart->second + launch_, until, {run, rank});
    return pass_restart(root, restart->second);
  }

  /// Through what a call did before it was begun again to the rank that came last.
  TaskId pass_restart(TaskId root, std::int64_t restarted) {
    add(JobUse::launch, root, restarted, restarted + launch_);
    TaskId last = root;
    for (const TaskId part : parts_.tasks(job_.task(root).call)) {
      if (job_.call(job_.task(root).call).is_eager) break;  // it began when its sender took part
      if (time(part).start > time(last).start && time(part).start <= restarted) last = part;
    }
    const std::int64_t start = time(last).start;
    const std::int64_t entry = std::min(start + launch_, restarted);
    const std::int64_t died = std::max(restarted - detection_, entry);
    add(JobUse::noticing, last, died, restarted);
    add(JobUse::lost, last, entry, died);
    add(JobUse::launch, last, start, entry);
    return last;
  }

  /// The task that was waited for until `end`, or that had the stream; nothing when there is none.
  [[nodiscard]] std::optional<TaskId> find_before(TaskId id, std::int64_t end) const {
    const auto fits = [&](TaskId other) { return time(other).end == end && !is_on_path_[other.index()]; };
    for (const TaskId before : job_.after(id)) {
      if (fits(before)) return before;
    }
    const Task& task = job_.task(id);
    if (task.stream == no_stream) return std::nullopt;
    const std::tuple first(task.rank, task.stream, end, TaskId(0));
    auto at = std::ranges::lower_bound(by_stream_, first, {},
                                       [this](TaskId other) { return stream_key(other, time(other).end); });
    for (; at != by_stream_.end() && job_.task(*at).rank == task.rank && job_.task(*at).stream == task.stream &&
           time(*at).end == end;
         ++at) {
      if (*at != id && fits(*at)) return *at;
    }
    return std::nullopt;
  }

  const Job& job_;
  std::int64_t detection_;
  std::int64_t launch_;
  const JobReport& report_;
  const Recording& recording_;
  CallParts parts_;
  std::vector<bool> is_on_path_;
  std::vector<TaskId> by_stream_;  // by rank, stream and end
  std::vector<JobStep> steps_;     // latest first
};

/// The ways of the calls on a path, with what their waits were for.
class OpenedCalls {
 public:
  explicit OpenedCalls(std::map<RunPart, sim::CriticalPath> paths) : paths_(std::move(paths)) {
    for (auto& [part, path] : paths_) {
      for (const sim::Probe& probe : path.probes) {
        owners_.push_back(&path);
        probes_.push_back(probe);
      }
    }
  }

  [[nodiscard]] const std::vector<sim::Probe>& probes() const { return probes_; }

  void settle(const std::vector<sim::Blame>& blames, const sim::Network& network, bool is_disturbed) {
    std::map<const sim::CriticalPath*, std::vector<sim::Blame>> by_path;
    for (const sim::Blame& part : blames) by_path[owners_[part.probe]].push_back(part);
    std::uint32_t first = 0;
    for (auto& [id, path] : paths_) {
      std::vector<sim::Blame>& own = by_path[&path];
      for (sim::Blame& part : own) part.probe -= first;
      first += static_cast<std::uint32_t>(path.probes.size());
      sim::settle_waits(path, own, network, is_disturbed);
    }
  }

  std::map<RunPart, sim::CriticalPath> take() && { return std::move(paths_); }

 private:
  std::map<RunPart, sim::CriticalPath> paths_;
  std::vector<sim::Probe> probes_;
  std::vector<const sim::CriticalPath*> owners_;  // by probe
};

std::vector<JobWait> name_waits(const Job& job, const Recording& recording, std::span<const sim::Probe> probes,
                                const sim::Network& network) {
  using Key = std::tuple<std::uint32_t, LabelId, LabelId, bool>;
  std::map<Key, std::int64_t> sums;
  for (const sim::Blame& part : recording.blames) {
    const sim::RunId waiting = probes[part.probe].run;
    const bool is_own = part.run == waiting;
    const CallId other = recording.calls[part.run.index()];
    const LabelId behind = is_own || other.is_none() ? LabelId() : job.call(other).label;
    sums[{part.resource, job.call(recording.calls[waiting.index()]).label, behind, is_own}] += part.time;
  }
  std::vector<JobWait> waits;
  for (const auto& [key, time] : sums) {
    const auto& [resource, of, behind, is_own] = key;
    waits.push_back({network.link(resource), network.node(resource), of, behind, is_own, {time}});
  }
  std::ranges::stable_sort(waits, [](const JobWait& a, const JobWait& b) { return a.time > b.time; });
  return waits;
}

/// "forward 3 of stage 5" -> "forward".
std::string without_numbers(const std::string& label) {
  const std::size_t digit = label.find_first_of("0123456789");
  if (digit == std::string::npos || digit == 0) return label;
  const std::size_t end = label.find_last_not_of(' ', digit - 1);
  return end == std::string::npos ? label : label.substr(0, end + 1);
}

}  // namespace

std::string_view to_string(JobUse use) {
  constexpr std::array<std::string_view, 7> names = {"computing", "pausing before",        "launching", "",
                                                     "given up:", "noticing a dead link:", "late:"};
  return names[static_cast<std::size_t>(use)];
}

std::string JobShare::text() const {
  if (use == JobUse::call) return what + ": " + std::string(sim::to_string(inside)) + " " + where;
  return std::string(to_string(use)) + " " + what;
}

std::vector<JobStep> walk_job(const Job& job, const Disturbances& disturbances, Picoseconds launch,
                              const JobReport& report, const Recording& recording) {
  if (job.tasks().empty()) return {};
  return Walk(job, disturbances, launch, report, recording).run();
}

Result<ExplainedJob> explain_job(const Job& job, const Topology& topology, const Disturbances& disturbances,
                                 const RunSettings& settings) {
  RunSettings plain = settings;
  plain.compare_with_alone = false;
  Recording roots;
  roots.finds_roots = true;
  auto report = run_job(job, topology, disturbances, settings, &roots);
  if (!report) return tl::unexpected(report.error());
  ExplainedJob explained;
  explained.report = *std::move(report);
  explained.path.steps = walk_job(job, disturbances, settings.endpoints.launch, explained.report, roots);
  Recording ways;
  for (const JobStep& step : explained.path.steps) {
    if (step.use == JobUse::call) ways.opens.insert(step.part);
  }
  if (ways.opens.empty()) return explained;
  if (auto again = run_job(job, topology, disturbances, plain, &ways); !again) return tl::unexpected(again.error());
  OpenedCalls opened(std::move(ways.paths));
  const sim::Network network(topology, settings.endpoints.engines());
  Recording waits;
  waits.probes = opened.probes();
  if (!waits.probes.empty()) {
    if (auto again = run_job(job, topology, disturbances, plain, &waits); !again) return tl::unexpected(again.error());
    explained.path.waits = name_waits(job, waits, waits.probes, network);
  }
  opened.settle(waits.blames, network, is_disturbed(disturbances.conditions));
  explained.path.calls = std::move(opened).take();
  return explained;
}

std::vector<JobShare> divide_job_path(const Job& job, const Topology& topology, const JobPath& path) {
  struct Sum {
    std::int64_t time = 0;
    std::map<std::string, std::int64_t> by_place;
  };
  using Key = std::tuple<JobUse, sim::PathUse, std::string, std::string>;
  std::map<Key, Sum> sums;
  const auto add = [&](Key key, const std::string& at, std::int64_t time) {
    Sum& sum = sums[std::move(key)];
    sum.time += time;
    sum.by_place[at] += time;
  };
  for (const JobStep& step : path.steps) {
    const Task& task = job.task(step.task);
    const std::string what = without_numbers(job.label(task.label));
    if (step.use != JobUse::call) {
      add({step.use, sim::PathUse::moving, what, ""}, topology.rank_name(task.rank), step.end - step.begin);
      continue;
    }
    for (const sim::PathPart& part : path.calls.at(step.part).parts) {
      const sim::PathPlace place = sim::place_of(part, topology);
      add({step.use, part.use, what, place.where}, place.at, part.time.count);
    }
  }
  std::vector<JobShare> shares;
  for (const auto& [key, sum] : sums) {
    const auto& [use, inside, what, where] = key;
    const auto most = std::ranges::max_element(sum.by_place, {}, [](const auto& part) { return part.second; });
    shares.push_back({use, inside, what, where, {sum.time}, most->first, {most->second}});
  }
  std::ranges::stable_sort(shares, [](const JobShare& a, const JobShare& b) { return a.time > b.time; });
  return shares;
}

}  // namespace espalier::scenario
