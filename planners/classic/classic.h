#pragma once

// Tested by: tests/unit/planners/classic/classic_test.cpp

#include "base/result.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// Shortest-path trees from and to every rank: one hop where the network has a route between each pair, relays where it
/// has none. All nine collectives on every connected graph; all_reduce as a direct reduce-scatter and all-gather.
/// Errors: too_large past 1,024 ranks for collectives without a root.
Result<Schedule> plan_flat(const PlanningProblem& problem, const Collective& collective);

/// all_reduce in one step: every rank sends its whole input to every other one, which adds up what comes. Half the
/// steps of `flat`, for N-1 times the message out of every rank. Errors: unsupported for other collectives, and where a
/// pair has no route past other ranks; too_large past 256 ranks.
Result<Schedule> plan_oneshot(const PlanningProblem& problem, const Collective& collective);

/// all_reduce over one rank: the whole message along a shortest-path tree to it and along another one back. The fewest
/// messages, 2 (N-1), in as few steps as `flat` takes; the center is the rank from which the two trees are lowest, of
/// the first 64 that may relay. Errors: unsupported for other collectives, and where no rank may relay.
Result<Schedule> plan_star(const PlanningProblem& problem, const Collective& collective);

/// Binomial trees over the ranks in machine order: broadcast, reduce, gather, scatter, and all_reduce as reduce and
/// broadcast. Errors: unsupported for other collectives, and where a pair that has to talk has no route.
Result<Schedule> plan_binomial(const PlanningProblem& problem, const Collective& collective);

/// Recursive halving and doubling: reduce_scatter, all_gather, all_reduce in about log2 N steps each; ranks beyond a
/// power of two are folded onto a neighbour first. Errors: as plan_binomial.
/// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
/// 19(1), 2005.
Result<Schedule> plan_recursive(const PlanningProblem& problem, const Collective& collective);

/// Bruck's algorithm: all_gather in ceil(log2 N) steps for any N; reduce_scatter as its reverse, all_reduce as both.
/// Errors: as plan_binomial.
/// Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for all-to-all communications
/// in multiport message-passing systems", IEEE TPDS 8(11), 1997.
Result<Schedule> plan_bruck(const PlanningProblem& problem, const Collective& collective);

/// Every block goes from its rank to its destination: all_to_all and send_recv on every connected graph. Blocks are cut
/// into pieces that take different routes, relayed by other ranks where that helps, so that links share the load; past
/// 64 ranks whole blocks go by the fewest relays; blocks of a traffic matrix count by their size. Errors: unsupported
/// for other collectives; too_large past 2^27 transfers.
Result<Schedule> plan_pairwise(const PlanningProblem& problem, const Collective& collective);

}  // namespace espalier::planners
