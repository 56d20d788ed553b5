#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/element.h"
#include "base/result.h"
#include "base/units.h"
#include "forecast/measured_errors.h"
#include "profile/profile.h"
#include "schedule/collective.h"
#include "sim/core/endpoints.h"
#include "sim/model.h"
#include "sweep/unit.h"
#include "topology/topology.h"

namespace espalier::sweep {

/// A topology that takes part.
struct Machine {
  Topology topology;
  std::string parameters;  ///< What was set in its compact file: "boxes=4 rails=8".
  std::string profile;     ///< What its profile is called, with how calls are started; empty: links alone.
  std::shared_ptr<const profile::Profile> costs;  ///< Then: the profile; its protocol is that of the runs.
  profile::Launch launch;                         ///< Then: how calls are started.
  std::string gpu = {};                           ///< What its ranks compute on; empty: not said.
};

/// Which single failures are looked at on every machine; of those that a symmetry makes the same, the first.
struct FailureKinds {
  bool links = false;  ///< Every cable, and every link without a way back.
  bool nodes = false;  ///< Every node that forwards.
  bool hosts = false;  ///< All nodes of a host at once.
  bool ranks = false;  ///< Every rank; never a collective's root.
};

/// A sweep: one run for every combination of one value of each member.
struct Spec {
  std::vector<Machine> machines;
  std::vector<CollectiveKind> collectives;
  /// Of all_to_all, each in turn, as load_traffic (schedule/traffic/traffic_matrix.h) takes them; "": equal blocks.
  std::vector<std::string> matrices = {""};
  std::string root;  ///< Of those that have one: a node, or a rank's number; empty for rank 0.
  /// Planners, or "auto": of all planners what simulates fastest; under a profile also NCCL's (planners/nccl/nccl.h)
  /// and "nccl": what it would pick of its own.
  std::vector<std::string> algorithms;
  ElementType type = ElementType::float32;
  std::vector<Bytes> sizes;
  std::vector<std::optional<Bytes>> chunks = {std::nullopt};  ///< Nothing: chosen by schedule and size.
  std::vector<sim::ModelKind> models = {sim::ModelKind::link};
  std::vector<sim::Protocol> protocols = {sim::Protocol::plain};
  std::vector<std::uint32_t> copy_engines = {0};  ///< Of a rank; 0: any number.
  std::vector<std::string> without;  ///< Failures by name (topology/without.h); parted by commas: all at once.
  FailureKinds failures;
  std::shared_ptr<const forecast::MeasuredErrors> errors;  ///< Of predictions; null: none are known.
  bool whole = true;                                       ///< Runs without any failure take part, too.
  std::vector<std::int32_t> jitters_ppm = {0};
  std::vector<std::uint64_t> seeds = {1};  ///< Of each jitter above 0.
};

/// The most rows of a sweep.
inline constexpr std::uint64_t max_rows = 50'000'000;

/// All runs of a sweep, sorted by their keys whatever the order of the spec's values; equal ones once.
/// Errors: invalid_input when a root is no rank, or a failure is on none of the machines; those of load_traffic;
/// too_large past `max_rows`. Cost: that of find_alike per machine and root where failures are listed.
Result<std::vector<Unit>> list_units(const Spec& spec);

}  // namespace espalier::sweep
