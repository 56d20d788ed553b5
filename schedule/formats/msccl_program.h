#pragma once

// Tested by: tests/property/schedule/formats_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/collective.h"
#include "schedule/formats/msccl_chunks.h"

namespace espalier {

/// A step of a thread block, split into what it does.
struct MscclOp {
  bool receives = false, reduces = false, sends = false, copies = false;
  bool sums = false;  ///< Adds what lies at `src` to what lies at `dst`, within the rank.
  MscclChunk src, dst;
  std::int64_t count = 1;
  std::int32_t after_block = -1;  ///< A thread block of the same rank, by place; -1: none.
  std::int32_t after_step = -1;
  int line = 0;
};

struct MscclBlock {
  std::int64_t send = -1, receive = -1, channel = 0;
  std::vector<MscclOp> ops;
};

/// What a file of MSCCL XML says, checked as far as one element shows.
struct MscclProgram {
  std::string name;
  Collective collective;
  std::int64_t chunks = 0;                     ///< Of a rank's larger buffer.
  std::vector<std::vector<MscclBlock>> ranks;  ///< Thread blocks by rank.
};

/// Errors: invalid_input with file:line:column; unsupported for collectives and steps that a schedule has no word for.
Result<MscclProgram> read_msccl_program(std::string_view text, const std::string& file);

}  // namespace espalier
