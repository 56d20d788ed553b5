#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>
#include <vector>

#include "sim/conditions.h"
#include "sim/core/network.h"

namespace espalier::sim {

/// The `scale` of docs/fair.md: rates are whole multiples of 1/scale bytes per second. The largest of some numbers with
/// which every rate fits 63 bits.
[[nodiscard]] std::int64_t pick_rate_scale(const Network& network);

/// By resource, in bytes per second / scale.
[[nodiscard]] std::vector<std::int64_t> scaled_capacities(const Network& network, std::int64_t scale);

/// What a link has after a change of its rate, in bytes per second / scale.
[[nodiscard]] std::int64_t scaled_capacity(const Network& network, std::int64_t scale, const RateChange& change);

}  // namespace espalier::sim
