#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/graph/parent_tree.h"
#include "planners/packing/problem.h"
#include "planners/packing/reduce/parallel_switches.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// A network with one root, in capacities of any unit. Requires: capacities that sum to less than 2^56.
struct RootNetwork {
  FlowNetwork network;  ///< Away from the root, which nothing enters.
  Rank root;
  std::int64_t rate = 0;               ///< What the trees carry in all.
  std::vector<std::int64_t> parallel;  ///< By arc: how many equal links it stands for; empty where all are one.
};

/// The problem's network, or, with `parallel`, its quotient by parallel switches: every link as wide as all its
/// parallel ones, for which the first one stands. No cut gets wider or narrower by that: like planes lie on the same
/// side of a smallest one. Nothing past 512 ranks, where a node has a backplane, where no switches are parallel, and
/// where rates have too fine a common divisor. Requires: a problem of one root.
std::optional<RootNetwork> root_network(const PackingProblem& problem, const ParallelSwitches* parallel);

/// Trees over that network as trees over the problem's links, dealt out to the planes of `parallel`; nothing where they
/// do not fit.
std::optional<std::vector<Arborescence>> lift(const PackingProblem& problem, const RootNetwork& network,
                                              const ParallelSwitches* parallel, std::span<const ParentTree> trees);

}  // namespace espalier::planners
