#include "scenario/job_path.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace espalier::scenario {
namespace {

class Walk {
 public:
  Walk(const Job& job, Picoseconds launch, const JobReport& report)
      : job_(job), launch_(launch.count), report_(report), parts_(job), is_on_path_(job.tasks().size(), false) {
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
      std::tie(at, until) = job_.task(at).kind == TaskKind::call ? pass_call(at, until) : pass_alone(at, until);
      const auto before = find_before(at, until);
      if (!before) break;
      at = *before;
    }
    add(JobUse::late, at, 0, until);
    std::ranges::reverse(steps_);
    return std::move(steps_);
  }

 private:
  using Place = std::pair<TaskId, std::int64_t>;

  [[nodiscard]] const TaskTime& time(TaskId id) const { return report_.tasks[id.index()]; }
  [[nodiscard]] std::tuple<Rank, std::uint16_t, std::int64_t, TaskId> stream_key(TaskId id, std::int64_t end) const {
    return {job_.task(id).rank, job_.task(id).stream, end, id};
  }

  void add(JobUse use, TaskId task, std::int64_t begin, std::int64_t end) {
    if (begin < end) steps_.push_back({use, task, begin, end});
  }

  Place pass_alone(TaskId id, std::int64_t until) {
    const std::int64_t start = time(id).start;
    add(job_.task(id).kind == TaskKind::compute ? JobUse::compute : JobUse::pause, id, start, until);
    return {id, start};
  }

  /// Through a call to the rank that came last, of those that came before `until`; the own one where none came later.
  Place pass_call(TaskId id, std::int64_t until) {
    TaskId last = id;
    for (const TaskId part : parts_.tasks(job_.task(id).call)) {
      if (time(part).start > time(last).start && time(part).start + launch_ <= until) last = part;
    }
    const std::int64_t start = time(last).start;
    const std::int64_t entry = std::min(start + launch_, until);
    const std::int64_t alone = std::min(entry + report_.calls[job_.task(id).call.index()].alone, until);
    add(JobUse::slowed, last, alone, until);
    add(JobUse::moving, last, entry, alone);
    add(JobUse::launch, last, start, entry);
    is_on_path_[last.index()] = true;
    return {last, start};
  }

  /// The task that was waited for until `end`, or that had the stream; nothing when there is none.
  [[nodiscard]] std::optional<TaskId> find_before(TaskId id, std::int64_t end) const {
    const auto fits = [&](TaskId other) { return time(other).end == end && !is_on_path_[other.index()]; };
    for (const TaskId before : job_.after(id)) {
      if (fits(before)) return before;
    }
    const Task& task = job_.task(id);
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
  std::int64_t launch_;
  const JobReport& report_;
  CallParts parts_;
  std::vector<bool> is_on_path_;
  std::vector<TaskId> by_stream_;  // by rank, stream and end
  std::vector<JobStep> steps_;     // latest first
};

/// "forward 3 of stage 5" -> "forward".
std::string without_numbers(const std::string& label) {
  const std::size_t digit = label.find_first_of("0123456789");
  if (digit == std::string::npos || digit == 0) return label;
  const std::size_t end = label.find_last_not_of(' ', digit - 1);
  return end == std::string::npos ? label : label.substr(0, end + 1);
}

}  // namespace

std::string_view to_string(JobUse use) {
  constexpr std::array<std::string_view, 6> names = {"computing", "pausing before", "launching",
                                                     "moving",    "held back:",     "late:"};
  return names[static_cast<std::size_t>(use)];
}

std::vector<JobStep> find_job_path(const Job& job, Picoseconds launch, const JobReport& report) {
  if (job.tasks().empty()) return {};
  return Walk(job, launch, report).run();
}

std::vector<JobShare> divide_job_path(const Job& job, const std::vector<JobStep>& path) {
  struct Sum {
    std::int64_t time = 0;
    std::map<Rank, std::int64_t> by_rank;
  };
  std::map<std::pair<JobUse, std::string>, Sum> sums;
  for (const JobStep& step : path) {
    const Task& task = job.task(step.task);
    Sum& sum = sums[{step.use, without_numbers(job.label(task.label))}];
    sum.time += step.end - step.begin;
    sum.by_rank[task.rank] += step.end - step.begin;
  }
  std::vector<JobShare> shares;
  for (const auto& [key, sum] : sums) {
    const auto most = std::ranges::max_element(sum.by_rank, {}, [](const auto& part) { return part.second; });
    shares.push_back({key.first, key.second, {sum.time}, most->first, {most->second}});
  }
  std::ranges::stable_sort(shares, [](const JobShare& a, const JobShare& b) { return a.time > b.time; });
  return shares;
}

}  // namespace espalier::scenario
