#pragma once

#include <cstdint>
#include <string>

#include "base/element.h"
#include "schedule/collective.h"

namespace espalier::engine {

/// What a rank calls, in a form that ranks compare: all have to call the same, in the same order.
struct CallHeader {
  std::uint64_t sequence = 0;  ///< The communicator's call, from 1.
  std::uint64_t count = 0;     ///< The message size in elements.
  std::uint64_t schedule = 0;  ///< A hash of the schedule.
  std::uint64_t chunk = 0;     ///< Bytes.
  std::uint64_t shares = 0;    ///< A hash of the shares; 0 for equal shards.
  std::uint32_t root = 0;      ///< UINT32_MAX without one.
  CollectiveKind kind = CollectiveKind::all_reduce;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::uint8_t padding = 0;

  friend bool operator==(const CallHeader&, const CallHeader&) = default;
};
static_assert(sizeof(CallHeader) == 48);

/// "call 3: all_reduce of 1024 float, sum".
std::string describe(const CallHeader& header);

/// What differs between what two ranks called: "rank 2 called ..., rank 0 called ...: the counts differ".
/// Requires: they differ.
std::string describe_mismatch(std::uint32_t rank, const CallHeader& ours, std::uint32_t peer, const CallHeader& theirs);

}  // namespace espalier::engine
