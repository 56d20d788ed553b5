#pragma once

// Tested by: tests/unit/cli/calibration/profile_calibration_test.cpp

#include <map>
#include <set>
#include <string>

#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/stop.h"
#include "cli/output/console.h"
#include "compare/read/measurements.h"
#include "topology/topology.h"

namespace espalier::cli {

/// The collective of that name on all ranks, of the first one where it has a root. Errors: invalid_input.
Result<Collective> default_collective(const std::string& name, const Topology& topology);

/// The collective with the file's shards or blocks, where they are unequal. Errors: invalid_input, such as where they
/// are of another number of ranks.
Result<Collective> with_shares_of(const compare::Measurements& rows, Collective collective);

/// Refuses rows of unequal shards or blocks, for `what` takes equal ones. Errors: unsupported.
OrStop<void> check_equal(const compare::Measurements& rows, const std::string& what);

/// The nearest size below that is a whole number of elements of four bytes for every rank, and at least one element.
Bytes predictable_size(Bytes size, const Collective& collective);

/// Leaves rows of pairs of GPUs out where others are of all ranks, with a warning: a text may have both.
void keep_whole(compare::Measurements& rows);

/// Where rows of so many ranks stand beside those of fewer, as MPI's benchmarks print them, leaves the former, with a
/// warning.
void keep_ranks(compare::Measurements& rows, std::size_t ranks);

/// The sizes of every collective. Errors: as predict_rows.
OrStop<std::map<std::string, std::set<std::int64_t>>> sizes_by_collective(const compare::Measurements& rows,
                                                                          const Topology& topology);

/// What a machine would take under a profile for every collective and size of these rows: a row each, its algorithm
/// what ran ("nccl/ring/ll128"). `algorithm`: a planner, "auto" or "nccl". A size that is no whole number of elements
/// per rank is predicted by the nearest one below that is.
/// Errors: invalid_input when the rows are of another number of ranks, or of no known collective.
OrStop<compare::Measurements> predict_rows(const Console& console, const Topology& topology,
                                           const compare::Measurements& rows, const forecast::Software& profile,
                                           const std::string& algorithm);

}  // namespace espalier::cli
