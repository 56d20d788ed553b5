#pragma once

// Tested by: tests/unit/scenario/read/read_scenario_test.cpp

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "scenario/run/disturbances.h"
#include "scenario/run/run_job.h"
#include "scenario/workload/averaging.h"
#include "scenario/workload/job.h"
#include "scenario/workload/kineto/kernel_waits.h"
#include "scenario/workload/kineto/recorded_time.h"
#include "scenario/workload/training_figures.h"
#include "topology/topology.h"

namespace espalier::scenario {

/// What is to be run, on what, under what circumstances.
struct Scenario {
  std::string name;
  Topology topology;
  Job job;
  Disturbances disturbances;
  RunSettings settings;
  std::optional<TrainingFigures> training;  ///< Of a training step that is given as a model.
  std::optional<TrainingModel> model;       ///< Then: the model, with `data` filled in.
  std::vector<AveragedUse> averaged;        ///< By gossip or compressed.
  /// Of profilers' traces: how often it is not known whether a kernel waited for one on another stream.
  std::uint64_t guessed_waits = 0;
  /// Of profilers' traces, else zero: the longest of the ranks' own times, and the exposed in their mean.
  RecordedTime recorded;
  /// Where there is any of those two: the job with an all_reduce for each that is averaged; the job where kernels wait
  /// for all that had ended when they began.
  Job other;
  std::optional<RoutingFigures> routing;  ///< What routing to experts makes of it.
  /// With `with_routes`: the job with other ways to route to experts, by what they are called.
  std::vector<std::pair<std::string, Job>> routed;
  std::string machine_gpu;  ///< As ScenarioMachine::gpu.
};

/// What came of reading a scenario: all of it, or the errors that kept it from being one.
struct ScenarioReading {
  std::optional<Scenario> scenario;  ///< Absent when any diagnostic is an error.
  std::vector<Diagnostic> diagnostics;
};

/// How tokens are routed to experts.
enum class Routes : std::uint8_t {
  written,   ///< As the file says.
  balanced,  ///< Every expert is as popular.
  placed,    ///< Experts are where a search puts them.
};

/// A machine that a scenario runs on.
struct ScenarioMachine {
  Topology topology;
  std::string gpu = {};  ///< What its file says that ranks compute on (compute/gpu.h); empty: nothing.
};

struct ScenarioOptions {
  /// Instead of the topology that the file names.
  std::optional<Topology> topology;
  std::string gpu;  ///< Of that topology, as ScenarioMachine::gpu.
  /// Finds the topology that a file names: by a path below the scenario's folder, or as the function does it. A name
  /// that leads out of the folder is refused before.
  std::function<Result<ScenarioMachine>(const std::string& name, const std::filesystem::path& folder)> open_topology;
  /// Instead of what the file says.
  std::optional<std::uint64_t> seed;
  std::optional<std::string> model;
  /// Gossip and compression become the all_reduce that they stand for.
  bool averages_plainly = false;
  Routes routes = Routes::written;
  bool with_routes = false;                       ///< Also read the job as it would be with other routes.
  WaitReading kernel_waits = WaitReading::least;  ///< Of profilers' traces.
  std::optional<Parallelism> parallelism;         ///< Of a training step that is given as a model.
  /// The job of such a step has no more micro-batches than these; Scenario::training and ::model are of all of them.
  std::optional<std::int64_t> micro_batches;
  std::size_t task_limit = max_tasks;  ///< Lower it to read many files of unknown origin.
  /// The most bytes of all traces of a scenario together, unpacked.
  std::size_t max_trace_bytes = std::size_t{512} << 20U;
};

/// Reads a file of the format `espalier_scenario: 1`, YAML or JSON (docs/scenarios.md). Several errors are reported at
/// once.
ScenarioReading read_scenario_file(const std::filesystem::path& path, const ScenarioOptions& options = {});

/// As `read_scenario_file`, for a text. `name_for_messages` stands for the file in diagnostics; files that it names
/// are read from `folder`, and refused without one.
ScenarioReading read_scenario_text(std::string_view text, const std::string& name_for_messages,
                                   const std::optional<std::filesystem::path>& folder = std::nullopt,
                                   const ScenarioOptions& options = {});

}  // namespace espalier::scenario
