#pragma once

// Tested by: tests/unit/scenario/workload/trace_forms_test.cpp

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenario/workload/chakra.h"

namespace espalier::scenario {

/// What an operation of a GOAL file says, in either form.
struct GoalOperation {
  ChakraType type = ChakraType::compute;  ///< Compute, send or receive.
  std::int64_t amount = 0;                ///< Bytes of a message, ns of a calc.
  std::int64_t peer = 0;                  ///< Of a message.
  std::int64_t tag = 0;
  std::int64_t cpu = 0;
};

/// Puts an operation behind those of its rank, as two nodes: its beginning, which what `irequires` it waits for, and
/// the operation itself, which waits for its beginning. Operation i has nodes 2 i and 2 i + 1. False, and nothing is
/// put there, when its amount or its cpu is past what there may be.
bool add_goal_operation(std::vector<ChakraNode>& nodes, const GoalOperation& operation);

/// The number of the node that an operation's beginning is, and that of the operation.
constexpr std::size_t begin_of_operation(std::size_t operation) { return 2 * operation; }
constexpr std::size_t node_of_operation(std::size_t operation) { return 2 * operation + 1; }

}  // namespace espalier::scenario
