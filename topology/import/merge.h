#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <vector>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

/// Several files about one machine as one draft. The first file that has links of a medium says where they lead; later
/// ones only fill in values that it lacks or has from a lesser origin. Nodes are the same with the same bus address or,
/// failing this, the same id.
/// Errors: infeasible when no file describes a machine.
Result<Draft> merge_drafts(std::vector<Draft> drafts);

/// The hosts of a fabric become machines: each host's rank gives way to a copy of the machine, and the links that led
/// to the host or its NICs lead to the NICs of the copy; NICs are matched by name, or else in their order. A switch
/// that joins hosts is there once for each NVLink domain. Errors: infeasible when the machine has no NIC; too_large for
/// more nodes than `max_imported_nodes`.
Result<Draft> place_machines(const Draft& machine, const Draft& fabric);

/// A fabric of `count` hosts on one switch that does not limit them.
Draft one_switch(std::int64_t count);

/// Tells each host of a fabric which NVLink domain it is in, where its file does not: as many hosts as fill one follow
/// each other, with a warning when that makes several. Requires: hosts_per_domain > 0.
void assign_domains(Draft& fabric, std::int64_t hosts_per_domain);

constexpr std::size_t max_imported_nodes = 200'000;

}  // namespace espalier
