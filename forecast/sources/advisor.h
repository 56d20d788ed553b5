#pragma once

// Tested by: tests/unit/forecast/sources/advisor_test.cpp

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "forecast/candidate_runs.h"
#include "schedule/schedule_source.h"
#include "topology/topology.h"

namespace espalier::forecast {

struct AdvisorOptions {
  std::string algorithm = "auto";       ///< A planner's name, or "auto": what simulates fastest at each size.
  std::optional<Bytes> chunk;           ///< Instead of the chunk that suits the schedule and size.
  std::optional<std::uint32_t> ahead;   ///< Instead of the rounds ahead that suit them.
  bool leaves_chunk_to_engine = false;  ///< Answers without a chunk, as memory has other limits than links.
  bool may_be_replaced = false;         ///< Of every answer (SourcedSchedule).
  /// Ranks reach each other's memory. Of schedules that links carry in about the same time it then takes the one that
  /// waits least often: that one also passes through memory least often, which no link shows.
  bool shares_memory = false;
  /// Seconds of a candidate where it will run; the choice is by that alone. Errors: unsupported where it cannot run.
  std::function<Result<double>(const planners::Candidate&, Bytes size)> seconds_there;
  /// What software adds to links (docs/profiles.md), for the choice; null: links alone.
  std::shared_ptr<const profile::Profile> profile;
};

/// Gives the schedules that suit a topology: plans each collective once, chooses per size. Deterministic: every process
/// that asks gets the same answer. Thread-safe.
class Advisor {
 public:
  Advisor(Topology topology, AdvisorOptions options) : topology_(std::move(topology)), options_(std::move(options)) {}

  /// Errors: those of the planners; unsupported when the algorithm does not plan this collective here, naming why.
  Result<SourcedSchedule> advise(const Collective& collective, Bytes size);

  /// As a function; the advisor lives as long as it.
  static ScheduleSource source(std::shared_ptr<Advisor> advisor);

 private:
  /// What was planned for a collective; schedules stay where they are.
  struct Planned {
    Collective collective;
    std::shared_ptr<const planners::Candidates> candidates;
    std::unique_ptr<CandidateRuns> runs;
  };
  Result<Planned*> plan_once(const Collective& collective);

  Topology topology_;
  AdvisorOptions options_;
  std::mutex mutex_;
  std::deque<Planned> planned_;
};

}  // namespace espalier::forecast
