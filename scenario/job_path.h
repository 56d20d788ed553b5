#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/report.h"
#include "scenario/run_job.h"

namespace espalier::scenario {

/// What the end of a job waited for at a moment.
enum class JobUse : std::uint8_t {
  compute,  ///< A rank computed.
  pause,    ///< A rank let a duration pass.
  launch,   ///< The last rank to come to a call passed its launch.
  moving,   ///< A call with all its ranks there moved data, as long as it takes alone on the idle network.
  slowed,   ///< And longer than that: for other calls, background, jitter or links that change.
  late,     ///< A straggler had not begun.
};

/// "computing", "pausing before", "launching", "moving", "held back:", "late:".
std::string_view to_string(JobUse use);

/// One thing that the end of a job waited for. Steps follow each other from 0 to the end without gaps.
struct JobStep {
  JobUse use = JobUse::compute;
  TaskId task;  ///< Whose it was; of a call the part of the rank that came last.
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Walks back from the task that ended last (of several the first): through a compute or pause to its start; through a
/// call to where the last of its ranks took part, as far as one did before; then to the task that it waited for, or
/// that its stream did, and that ended just then. Requires: a report of this job with times alone.
/// Cost: O(tasks log tasks).
std::vector<JobStep> find_job_path(const Job& job, Picoseconds launch, const JobReport& report);

/// A path's time by use and label; most first. Numbers at the end of labels ("forward 3") are left out.
struct JobShare {
  JobUse use = JobUse::compute;
  std::string what;
  Picoseconds time;
  Rank most_at;  ///< Where most of it was: a rank, of a call the one that came last.
  Picoseconds most_time;
};
std::vector<JobShare> divide_job_path(const Job& job, const std::vector<JobStep>& path);

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
  std::vector<LinkBusy> full;                ///< Links busy for more than 90 % of the time, busiest first.
  std::vector<JobImprovement> improvements;  ///< Fastest first; also those that save nothing.
};

/// Runs a job, takes its path apart, and runs it anew with every single change that may help: twice the bandwidth of
/// the classes whose links are busiest, half of all latencies, computing twice as fast, no launch, other chunks, and
/// without each kind of disturbance that there is. Everything is planned and simulated anew, nothing estimated.
/// Requires and errors: as run_job; a change that cannot be run is left out. Cost: at most 12 runs.
Result<JobLimits> find_job_limits(const Job& job, const Topology& topology, const Disturbances& disturbances,
                                  const RunSettings& settings);

}  // namespace espalier::scenario
