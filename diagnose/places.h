#pragma once

// Tested by: tests/unit/diagnose/places_test.cpp

#include <functional>
#include <span>
#include <vector>

#include "diagnose/fault_classes.h"
#include "diagnose/fault_search.h"

namespace espalier::diagnose {

/// The same hypotheses with the first faults of the likeliest classes in other parts of these, so many in all: plans
/// use what a symmetry makes the same unlike, and the part of a class that fits best says how well the class fits.
/// Priors of a class are shared by its parts. `predict` puts what is predicted in the place of what was taken from
/// another part. Requires: hypotheses that are sorted, each with one curve.
std::vector<Hypothesis> in_every_place(std::span<const FaultClass> classes, std::vector<Hypothesis> hypotheses,
                                       std::size_t max_places,
                                       const std::function<void(std::span<Hypothesis>)>& predict);

}  // namespace espalier::diagnose
