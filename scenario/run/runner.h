#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenario/run/alone_times.h"
#include "scenario/run/background_traffic.h"
#include "scenario/run/plans.h"
#include "scenario/run/rank_clock.h"
#include "scenario/run/run_job.h"
#include "scenario/run/slowed_computing.h"
#include "scenario/run/timers.h"

namespace espalier::scenario {

/// One run of a job: tasks on streams on one side, the model's runs on the other, timers between them.
///
/// Invariants: (1) a task is started once, when all it waits for is over and its stream, if it has one, is free; (2) a
/// call has a run in the model from its first rank's entry on, an eager message from its sender's; (3) timers and the
/// model's events are handled in order of time, the model's first, so that all that ends at a moment is known before
/// something begins at it.
class Runner {
 public:
  Runner(const Job& job, const Topology& topology, const Disturbances& disturbances, const RunSettings& settings,
         Recording* recording);

  Result<JobReport> run();

 private:
  /// A stream of a rank: the task that it does, and those that are ready, earliest first.
  struct Ready {
    std::int64_t time = 0;
    TaskId task;
    auto operator<=>(const Ready&) const = default;
  };
  struct Stream {
    TaskId running;
    bool is_listed = false;    ///< Among those that may have something to start.
    std::vector<Ready> ready;  ///< A heap.
  };
  /// A call under way.
  struct CallState {
    const Plan* plan = nullptr;  ///< None for a single rank.
    sim::RunId run;              ///< From the first rank's entry on.
    std::uint32_t entered = 0;   ///< Ranks that take part.
    std::uint32_t ended = 0;     ///< Ranks that are through, or will be at a moment that is known.
    std::int64_t arrival = -1;   ///< Of an eager message: when all of it is at its destination, once that is known.
  };
  /// Whose a run of the model is.
  struct Owner {
    CallId call;  ///< None: of the background.
    sim::RunId run;
  };

  void prepare_tasks();
  void prepare_streams();
  void make_ready(TaskId task, std::int64_t time);
  Result<void> handle(const Timer& timer);
  Result<void> start_listed(std::int64_t time);
  Result<void> start(TaskId task, std::int64_t time);
  void free_stream(TaskId task);
  void end_task(TaskId task, std::int64_t time);
  void move_beside(TaskId task, std::int64_t time, int change);
  void hear_from_model();
  [[nodiscard]] std::int64_t compute_time(TaskId task) const;
  [[nodiscard]] tl::unexpected<Error> past_the_end(TaskId task) const;
  Result<JobReport> finish();

  // What happens to calls: call_runs.cpp.
  Result<void> prepare_calls();
  [[nodiscard]] sim::RunOptions options_of(const Call& call, const PlannedSchedule& planned) const;
  Result<void> enter(TaskId task, std::int64_t time);
  Result<void> enter_message(TaskId task, std::int64_t time);
  Result<void> begin_run(CallId call);
  [[nodiscard]] TaskId sender_of(CallId call) const;
  [[nodiscard]] bool moves(CallId call) const;
  [[nodiscard]] std::int64_t end_of_part(CallId call, const sim::RankEnd& end);
  void own(sim::RunId run, CallId call);
  [[nodiscard]] bool is_recorded(sim::RunId run) const;
  void open_call(CallId call);
  void take_notice(const Notice& notice);
  Result<void> restart_calls(std::int64_t time);
  Result<void> restart(CallId call, std::int64_t time);

  // What a job that does not go on waits for: stuck.cpp.
  [[nodiscard]] Error explain_stuck() const;
  [[nodiscard]] std::optional<Error> explain_dead_link() const;
  [[nodiscard]] Error explain_circle(CallId first) const;
  [[nodiscard]] bool is_running(TaskId task) const;
  [[nodiscard]] TaskId running_before(TaskId task) const;
  [[nodiscard]] std::string call_text(CallId call) const;

  const Job& job_;
  const Topology& topology_;
  const Disturbances& disturbances_;
  const RunSettings& settings_;
  Recording* recording_;  ///< Null: nothing is.

  sim::Network network_;
  std::unique_ptr<sim::Model> model_;
  Plans plans_;
  AloneTimes alone_;
  BackgroundTraffic background_;
  CallParts parts_;
  std::vector<Notice> notices_;
  std::size_t taken_ = 0;  ///< Replannings whose calls have begun again.
  Bytes chunk_;            ///< Of the calls that name none.

  Timers timers_;
  std::int64_t now_ = 0;
  std::size_t unfinished_ = 0;
  std::vector<std::uint32_t> pending_;          // by task: how many of those it waits for are not over
  std::vector<std::uint32_t> follower_begins_;  // by task, into followers_
  std::vector<TaskId> followers_;
  std::vector<std::uint32_t> stream_of_;  // by task; of those without a stream nothing
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> listed_;  // streams that may have something to start
  std::vector<TaskId> streamless_;     // ready tasks without a stream
  std::vector<CallState> calls_;
  std::vector<bool> part_entered_;  // by part of a call
  std::vector<bool> part_ended_;
  std::vector<Owner> owners_;  // by run
  std::vector<sim::RankEnd> heard_;
  std::vector<std::int64_t> compute_ppm_;  // by rank
  std::vector<std::int64_t> starts_;       // by rank
  RankClock clock_;
  std::optional<SlowedComputing> slowed_;  // nothing: computing takes as long whatever moves
  JobReport report_;
};

}  // namespace espalier::scenario
