#pragma once

// Tested by: tests/property/planners/matrix_test.cpp

#include <optional>
#include <span>

#include "forecast/question.h"

namespace espalier::forecast {

/// The rings that `simulate` walks in the place of a stored schedule, alone or beside other planners; nothing where
/// they are stored: with fewer than planners::min_walked_ranks, where hops share something, in the model fair, under
/// a profile. Walking gives what the stored schedule gives at all of these sizes. Where that would have too many
/// transfers and deals whole shards to the rings, walking is quicker by up to two fifths, and is taken unless something
/// is disturbed or endpoints cost time. Without a bound.
std::optional<planners::Candidate> find_walked_ring(const Topology& topology, const Collective& collective,
                                                    std::span<const Bytes> sizes, const RunOptions& options);

}  // namespace espalier::forecast
