#pragma once

// Tested by: tests/unit/topology/analysis/symmetry_test.cpp

#include <vector>

#include "base/diagnostic.h"
#include "topology/topology.h"

namespace espalier {

/// Warnings for what does not fit the rest of the machine: a GPU with fewer links than its peers, a slow link in a fast
/// bundle, a box without one of its NICs. Most such machines are degraded, and nothing else would notice.
///
/// A warning needs a clear majority: at least three quarters of the peers (and at least three) agree. Peers are nodes
/// of one kind, and among switches of one role (their names without digits and host), over all hosts first and inside
/// each host where that gave no majority. Networks that join ranks directly may be meshes, whose border has fewer
/// links: there only few deviants count, at most one in 16 (but two always) and never more than eight.
///
/// Codes: T101 links per node, T102 neighbouring switches per node, T103 rates of a node itself, T104 nodes per host,
/// T105 the directions of a pair differ, T106 a link slower than its parallel ones, T107 a link off its class's rate.
std::vector<Diagnostic> find_asymmetry(const Topology& topology);

}  // namespace espalier
