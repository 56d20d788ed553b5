#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <functional>

#include "base/result.h"
#include "planners/used_paths.h"
#include "scenario/report/report.h"
#include "scenario/run/disturbances.h"
#include "scenario/run/recording.h"
#include "scenario/workload/job.h"
#include "sim/core/endpoints.h"
#include "sim/model.h"

namespace espalier::scenario {

struct RunSettings {
  sim::ModelKind model = sim::ModelKind::link;
  sim::Endpoints endpoints;  ///< The launch passes between a rank's decision to take part and its doing so.
  /// The largest chunk of the calls that name none. Chosen when zero: a power of two that suits all of them
  /// (planners/chunking.h) and makes no more than about `max_chunk_hops` chunks times links in the whole run. It is
  /// one for all, because links serve calls that meet there chunk by chunk in turn: who has larger chunks would get
  /// more.
  Bytes chunk;
  std::int64_t max_chunk_hops = 24'000'000;
  planners::Paths paths = planners::Paths::any;  ///< That calls may take.
  /// Also runs each kind of call alone on the idle network, for CallTime::alone.
  bool compare_with_alone = true;
  /// So much longer, in millionths, a rank computes while it moves data in calls of this stream.
  std::int64_t slowed_ppm = 0;
  std::uint16_t slowing_stream = no_stream;
  /// Told now and then how many tasks are over.
  std::function<void(std::size_t)> on_progress;
};

/// Runs a job on a topology. A task is ready when what it waits for is over; a stream takes its ready tasks in the
/// order in which they became ready, ties by id, one at a time. A call's data moves as soon as the ranks concerned take
/// part. Deterministic. Requires: a job that passes `check_job`, conditions that pass `check_conditions`. Errors: those
/// of the planners; infeasible when the job gets stuck, because ranks wait for each other in a circle or for a dead
/// link, naming tasks, ranks, call and link; too_large when background traffic piles up, or a call is too large to be
/// recorded. Cost: that of the model, and O(log ready) per task; about 100 bytes per task and call. What `recording`
/// asks for (null: nothing) is found out on the way, and calls then need memory for all their chunks while they are
/// under way.
Result<JobReport> run_job(const Job& job, const Topology& topology, const Disturbances& disturbances,
                          const RunSettings& settings, Recording* recording = nullptr);

}  // namespace espalier::scenario
