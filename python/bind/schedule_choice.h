#pragma once

// Tested by: python/tests/behaviour.py

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/communicator/job.h"
#include "schedule/schedule_source.h"
#include "topology/topology.h"

namespace espalier::python {

/// A plan file and the message sizes that it is for.
struct PlanForSizes {
  std::string path;
  std::int64_t least = 0;  ///< Bytes.
  std::optional<std::int64_t> most;
};

/// What the environment says of a backend's calls (docs/torch.md).
struct BackendSettings {
  std::string transport = "auto";
  std::string algorithm = "auto";
  std::string topology;  ///< A file; empty: all ranks connected alike.
  std::vector<PlanForSizes> plans;
  std::string device_tensors = "auto";  ///< Of the backend; here for ranks that differ in it.
};

/// What a group runs, and by which RDMA devices.
struct GroupSchedules {
  std::function<ScheduleSource(bool shares_memory)> source;  ///< Of ranks that reach each other's memory, or do not.
  engine::VerbsOptions verbs;                                ///< The rails of the topology that is taken.
  /// Of all_to_alls with counts per peer (Communicator::plan_counts), where a topology is taken and the choice is free.
  std::optional<Topology> balanced_on = std::nullopt;
};

/// The schedules of a group of so many ranks. The topology is taken where it has as many ranks (`is_whole_job`: it has
/// to), a plan where collective, ranks and size fit it.
/// Errors: those of reading files; invalid_input for a topology or a plan of other ranks.
Result<GroupSchedules> schedules_for(const BackendSettings& settings, std::size_t ranks, bool is_whole_job);

/// What all ranks must have alike.
std::vector<engine::Setting> agreed_settings(const BackendSettings& settings);

}  // namespace espalier::python
