#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <span>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/fault_search.h"

namespace espalier::diagnose {

/// Each fault of the search's curves together with a rank that starts late: all rows are longer by one time. The
/// likeliest are predicted at their own rates, and in other parts of their classes. Hypotheses have one curve and two
/// faults, the late rank last. Cost: a likelihood for each of some rates of each curve, a few predictions for each
/// likely one; with estimates no prediction.
std::vector<Hypothesis> find_late_beside(const FaultSearch& search, std::span<const FaultClass> classes,
                                         const DiagnoseOptions& options);

}  // namespace espalier::diagnose
