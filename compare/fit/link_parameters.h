#pragma once

// Tested by: tests/unit/compare/fit/calibrate_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier::compare {

enum class ParameterKind : std::uint8_t { bandwidth, latency, overhead, reduce_bandwidth };

/// "bandwidth", "latency", "overhead", "reduce_bandwidth".
std::string_view to_string(ParameterKind kind);

/// One number that a calibration may change: what all links of a class, or all ranks of one reduction rate, share.
struct Parameter {
  ParameterKind kind = ParameterKind::bandwidth;
  std::string group;  ///< The links' class, or their rate and latency where they have none; "ranks", "switches".
  double given = 0;   ///< By the topology, in bytes per second or seconds; 0 where it is absent.
  double start = 1;   ///< Where a fit begins: `given`, or next to nothing; above 0.
  std::vector<LinkId> links;  ///< Whose number it is.
  std::vector<NodeId> nodes;

  /// "latency of nvlink".
  [[nodiscard]] std::string name() const;
};

/// The parameters of a topology, by class in link order: bandwidth, latency and overhead of each class of links, and,
/// when asked for, the reduction rates. Links without a class are one class when bandwidth, latency and overhead are
/// equal.
std::vector<Parameter> find_parameters(const Topology& topology, bool with_reduction);

/// The topology with other values; `values` are in bytes per second and seconds, one per parameter, and 0 takes an
/// overhead, a latency or a reduction's limit away. Links of one class that differ keep their ratio. With
/// `digits` > 0 every changed number is rounded to so many decimal digits.
/// Errors: those of Topology::make.
Result<Topology> with_parameters(const Topology& topology, std::span<const Parameter> parameters,
                                 std::span<const double> values, int digits = 0);

/// A value with its unit: "24.87 GB/s", "1.3 us"; "none" for 0.
std::string format_parameter(ParameterKind kind, double value);

}  // namespace espalier::compare
