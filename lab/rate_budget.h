#pragma once

// Tested by: tests/unit/lab/scale_test.cpp

#include "base/rational.h"
#include "topology/topology.h"

namespace espalier::lab {

/// What this kind of machine carries in a lab, by default, per core: the sum over all links of the bytes per second
/// that pass them. docs/lab.md has the measurements behind it.
inline constexpr Bandwidth budget_per_core{300'000'000};
/// The fastest link that a lab shapes: above it, the kernel's timers lose rate.
inline constexpr Bandwidth fastest_link{300'000'000};

/// The largest factor 1, 2 or 5 times a power of ten, and at most 1, with which all links, busy at once, stay within
/// the budget of `cores`, and none is faster than `fastest_link`.
Rational choose_scale(const Topology& topology, unsigned cores);

}  // namespace espalier::lab
