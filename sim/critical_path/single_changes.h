#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/critical_path/path_times.h"
#include "topology/topology.h"

namespace espalier::sim {

enum class ChangeKind : std::uint8_t {
  bandwidth,  ///< Twice the bandwidth of links.
  latency,    ///< Half of their latency.
  overhead,   ///< None of their per-message overhead.
  reduction,  ///< Twice the rate at which nodes reduce.
  backplane,  ///< Twice the bandwidth of nodes.
};

/// "bandwidth".
std::string_view to_string(ChangeKind kind);

/// One thing about a topology that could be better.
struct SingleChange {
  ChangeKind kind = ChangeKind::bandwidth;
  std::string what;  ///< "twice the bandwidth of nvlink2 (48 links)".
  std::vector<LinkId> links;
  std::vector<NodeId> nodes;

  /// The topology with it. Errors: invalid_input where it would leave the limits of topologies.
  [[nodiscard]] Result<Topology> apply(const Topology& topology) const;
};

/// The changes that the times of a critical path suggest: of the classes on which most was spent, at most three for
/// each kind, and of the class of the busiest link (none: none was busy); and of the links with the most alone.
std::vector<SingleChange> suggest_changes(std::span<const PathTime> path, LinkId busiest, const Topology& topology);

}  // namespace espalier::sim
