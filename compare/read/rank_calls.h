#pragma once

// Tested by: tests/unit/compare/stragglers_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier::compare {

/// One collective as one rank saw it.
struct RankCall {
  std::string group;
  std::string collective;              ///< As its source names it: "allreduce", "nccl:all_reduce".
  std::optional<std::int64_t> number;  ///< Of the group's calls, where its source says it.
  double begin = 0;                    ///< Seconds, by the rank's own clock.
  double seconds = 0;                  ///< From its coming until the end.
};

/// What one rank recorded.
struct RankCalls {
  std::string file;
  std::uint32_t rank = 0;
  std::vector<RankCall> calls;  ///< By begin.
};

/// Whether a text is a record of one rank's collectives: a trace of PyTorch's profiler (Kineto) or a dump of its flight
/// recorder, as JSON.
bool is_rank_record(std::string_view text);

/// Reads such a record. The rank is what the record says, else `otherwise`. Collectives of GPUs alone are taken, with a
/// time. Errors: invalid_input with file:line:column; also for a record without such a call.
Result<RankCalls> read_rank_calls(std::string_view text, std::string_view name, std::uint32_t otherwise);

}  // namespace espalier::compare
