#pragma once

// Tested by: tests/unit/planners/bounds/all_reduce_bound_test.cpp

#include <optional>

#include "schedule/bound.h"
#include "topology/topology.h"

namespace espalier::planners {

class PlanningProblem;

/// Whether any switch copies or adds.
bool computes_in_network(const Topology& topology);

/// What all_reduce takes at least where switches copy or add, by counting messages between *domains* (of in-network
/// aggregation): ranks that switches which copy or add join, and those switches. In C domains, each as good as one
/// rank, at least 2(C-1) messages of S bytes leave one domain for another (docs/bounds.md). Nothing where there is one
/// domain, or where such a switch is in a domain without ranks. Requires: ranks that reach each other. Cost: two
/// maximum flows per domain.
std::optional<Bound> domain_message_bound(const PlanningProblem& problem);

}  // namespace espalier::planners
