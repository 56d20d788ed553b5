#pragma once

// Tested by: tests/options/options_test.py

#include <string>

#include "cli/flags/group_flags.h"
#include "cli/output/console.h"

namespace espalier::cli {

/// `bound` for several groups at once.
ExitCode bound_of_groups(const Console& console, const Topology& topology, const GroupFlags& flags,
                         const CollectiveFlags& collective);

/// `plan` for several groups at once; `output` names a file per group, %g being the group's number.
ExitCode plan_of_groups(const Console& console, const Topology& topology, const GroupFlags& flags,
                        const CollectiveFlags& collective, const std::string& output);

}  // namespace espalier::cli
