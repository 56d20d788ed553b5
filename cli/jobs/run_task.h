#pragma once

// Tested by: tests/options/options_test.py

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cli/flags/inputs.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/run_rank.h"
#include "engine/check/data_case.h"
#include "engine/communicator/communicator.h"
#include "planners/chooser.h"

namespace espalier::cli {

/// What all ranks work out alike before they meet.
struct RunTask {
  Collective collective;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::vector<Bytes> sizes;
  std::optional<Bytes> chunk;
  std::optional<std::uint32_t> ahead;
  TransportChoice transport = TransportChoice::automatic;
  std::shared_ptr<const forecast::Software> profile;  ///< What auto chooses by; null: links alone.
};

/// Errors: invalid_input, naming the flag.
Result<RunTask> resolve_run(const RunFlags& flags, const Input& input);

/// The data of one size.
engine::DataCase data_of(const RunTask& task, Bytes size);

/// A plan's schedule for its collective; the advisor's for all else (barriers of a job that runs a plan). Takes the
/// plan out of the input. `seconds_there`: what auto chooses by in the place of links (forecast::AdvisorOptions).
ScheduleSource source_for(const RunFlags& flags, const RunTask& task, bool is_one_machine, Input& input,
                          std::function<Result<double>(const planners::Candidate&, Bytes)> seconds_there = {});

}  // namespace espalier::cli
