#pragma once

// Tested by: tests/unit/planners/chooser_test.cpp

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "planners/bundled_network.h"
#include "planners/chooser.h"

namespace espalier::planners {

/// Plans of machines past the size whose plans are written down: rings to be walked, and of packing and tree one rank's
/// part (symmetric_plan.h); of a machine that has lost something packing and tree of the machine before, repaired
/// (repaired_plan.h). The bound is proven with the packing. Nothing where the ranks are not alike or the
/// collective has no such plan: then plans are made as elsewhere. Options and errors as make_candidates.
std::optional<Result<Candidates>> make_large_candidates(const BundledNetwork& network, const Collective& collective,
                                                        std::span<const Planner> planners,
                                                        const CandidateOptions& options,
                                                        const std::function<void(std::string_view)>& on_start);

/// The rings of such a machine whose ranks are not all alike, to be walked; nothing where they cannot be.
std::optional<Candidate> make_walked_ring(const Topology& topology, const Collective& collective, const Bound& bound);

}  // namespace espalier::planners
