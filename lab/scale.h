#pragma once

// Tested by: tests/unit/lab/scale_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "topology/topology.h"

namespace espalier::lab {

/// A factor above 0 and up to 1, written "0.01" or "1/128".
/// Errors: invalid_input, with what to write.
Result<Rational> parse_scale(std::string_view text);

/// "0.01", or "1/3" where a decimal number would not end.
std::string format_scale(const Rational& factor);

/// The network that a lab builds, and that its simulation must therefore be of.
struct ScaledTopology {
  Topology topology;
  Rational factor;
  std::vector<std::string> left_out;  ///< What the lab cannot build and the scaled topology does not have, for people.
};

/// Rates times the factor, rounded down; latencies divided by it where the lab can delay packets, and zero otherwise.
/// Times of whole messages are then 1/factor times those of the topology. What the lab cannot build is left out: costs
/// per message, backplanes, rates of reduction (the ranks really reduce), switches that copy or add.
/// Errors: infeasible when a link would be slower than `slowest_link`, naming it.
Result<ScaledTopology> scale_topology(const Topology& topology, const Rational& factor, bool delays_packets);

/// The slowest link that a lab shapes: 100 kB/s.
inline constexpr Bandwidth slowest_link{100'000};

}  // namespace espalier::lab
