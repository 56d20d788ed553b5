#pragma once

// Tested by: tests/unit/engine/communicator/live_groups_test.cpp

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/executor/execution.h"
#include "engine/program/rank_program.h"
#include "engine/transport/whole_call.h"
#include "schedule/schedule_source.h"

namespace espalier::engine {

/// Calls of one shape: what is left per call are the buffers.
struct PreparedCall {
  SourcedSchedule source;
  std::vector<std::int64_t> shares;  ///< As the caller gave them.
  std::uint64_t shares_hash = 0;     ///< Of those of the collective, which have no common factor.
  std::uint64_t schedule_hash = 0;
  Bytes chunk;
  RankProgram program;
  std::unique_ptr<WholeCall> whole;      ///< What carries it out instead of the program; null: nothing does.
  std::unique_ptr<Execution> execution;  ///< Null until the first call.
  std::uint64_t last_use = 0;            ///< The group's call that used it last.
};

/// A hash of what a schedule does, equal on ranks that have the same one.
std::uint64_t hash_of(const Schedule& schedule);

}  // namespace espalier::engine
