#pragma once

// Tested by: tests/unit/scenario/report/job_path_test.cpp

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenario/report/report.h"
#include "scenario/run/recording.h"
#include "scenario/run/run_job.h"
#include "sim/critical_path/path_times.h"

namespace espalier::scenario {

/// What the end of a job waited for at a moment.
enum class JobUse : std::uint8_t {
  compute,   ///< A rank computed.
  pause,     ///< A rank let a duration pass.
  launch,    ///< A rank passed the launch before it took part in a call.
  call,      ///< A call's data was under way.
  lost,      ///< A call did what was given up later, because a link died.
  noticing,  ///< A call went on although a link of its plan was dead, which had not been noticed.
  late,      ///< A straggler had not begun.
};

/// "computing", "pausing before", "launching", "", "given up:", "noticing a dead link:", "late:".
std::string_view to_string(JobUse use);

/// One thing that the end of a job waited for. Steps follow each other from 0 to the end without gaps.
struct JobStep {
  JobUse use = JobUse::compute;
  TaskId task;  ///< Whose it was; of a call the part that ended.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  RunPart part;  ///< Of a call: whose way through which of its runs.
};

/// Who was in the way of the calls on a path: a call of this label had to wait at a link or node for another one's.
struct JobWait {
  LinkId link;  ///< None for a node.
  NodeId node;
  LabelId of;
  LabelId behind;       ///< None: of the background, or its own.
  bool is_own = false;  ///< Another transfer of the same call.
  Picoseconds time;
};

/// What the end of a job waited for, down to the links.
struct JobPath {
  std::vector<JobStep> steps;
  std::map<RunPart, sim::CriticalPath> calls;  ///< The ways of the steps that are calls.
  std::vector<JobWait> waits;                  ///< Most first.
};

/// Walks back from the task that ended last (of several the first): through a compute or pause to its start; through a
/// call along the critical path of the rank's part in it (sim/critical_path/critical_path.h) to the rank whose taking
/// part that began with, or, where the call was begun again, to the rank that came last before; then to the task that
/// that one waited for, or that its stream did, and that ended just then. Requires: the report and roots of a run of
/// this job. Cost: O(tasks log tasks).
std::vector<JobStep> walk_job(const Job& job, const Disturbances& disturbances, Picoseconds launch,
                              const JobReport& report, const Recording& recording);

/// A job's report and path.
struct ExplainedJob {
  JobReport report;
  JobPath path;
};

/// Runs a job three times: for its report and the roots of its calls, for the ways of the calls on the path, and for
/// who was in their way. Requires and errors: as run_job.
Result<ExplainedJob> explain_job(const Job& job, const Topology& topology, const Disturbances& disturbances,
                                 const RunSettings& settings);

/// A path's time by use, label, and of calls by use of their time and class of links; most first. Numbers at the end of
/// labels ("forward 3") are left out.
struct JobShare {
  JobUse use = JobUse::compute;
  sim::PathUse inside = sim::PathUse::moving;  ///< Of a call.
  std::string what;
  std::string where;  ///< Of a call: the links' class or rate; "ranks" and "switches" for nodes.
  Picoseconds time;
  std::string max_at;  ///< Where most of it was: a link, node or rank.
  Picoseconds max_time;

  /// "computing forward", "tensor: moving over nvlink4".
  [[nodiscard]] std::string text() const;
};
std::vector<JobShare> divide_job_path(const Job& job, const Topology& topology, const JobPath& path);

/// One change, and how long the job takes with it.
struct JobImprovement {
  std::string change;
  Picoseconds elapsed;
};

/// What limits a job, and what would help.
struct JobLimits {
  JobReport report;
  std::size_t steps = 0;                     ///< Of the path.
  std::vector<JobShare> path;                ///< Sums to the time elapsed.
  std::vector<JobWait> waits;                ///< Most first.
  std::vector<LinkBusy> full;                ///< Links busy for more than 90 % of the time, busiest first.
  std::vector<JobImprovement> improvements;  ///< Fastest first; also those that save nothing.
};

/// Told of each single change before it is made, and how many there are.
using OnChange = std::function<void(const std::string& change, std::size_t total)>;

/// Runs a job, takes its path apart, and runs it anew with every single change that may help: what the calls on the
/// path suggest (sim/critical_path/single_changes.h), computing twice as fast, no launch, other chunks, and without
/// each kind of disturbance that there is. Everything is planned and simulated anew, nothing estimated. Requires and
/// errors: as run_job; a change that cannot be run is left out. `others`: jobs that a change makes of this one, by what
/// it is called. Cost: at most 25 runs, and one for each of the others.
Result<JobLimits> find_job_limits(const Job& job, const Topology& topology, const Disturbances& disturbances,
                                  const RunSettings& settings, const OnChange& on_change = {},
                                  std::span<const std::pair<std::string, Job>> others = {});

}  // namespace espalier::scenario
