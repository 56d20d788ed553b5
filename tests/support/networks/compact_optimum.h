#pragma once

#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::test {

/// The least time per byte of S that any routing of a collective over trees (all_to_all and send_recv: not answered)
/// takes where switches only forward and all ranks may relay, in floating point, by one linear program that knows
/// neither trees nor cuts.
///
/// Its variables are how much goes from each rank to each other one, as a flow through switches that keeps to links and
/// backplanes. Between ranks alone J. Edmonds' theorem ("Edge-disjoint branchings", 1973) says when trees of given
/// weights exist: when every rank gets the weight of all of them as a flow of its own. gather and scatter are one flow
/// that ranks pass on. For all_reduce the weight that each rank roots is a variable, the same inwards and outwards.
/// Requires: every rank reaches every other. Cost: a program of ranks x links + ranks^3 variables.
double compact_optimum(const Topology& topology, const Collective& collective);

}  // namespace espalier::test
