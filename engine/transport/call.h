#pragma once

// Tested by: tests/unit/engine/communicator/exchange_test.cpp

#include <cstdint>
#include <string>

#include "base/element.h"
#include "schedule/collective.h"

namespace espalier::engine {

/// What a rank calls, in a form that ranks compare: all have to call the same, in the same order.
struct CallHeader {
  std::uint64_t sequence = 0;  ///< The communicator's call, from 1.
  std::uint64_t count = 0;     ///< The message size in elements; with counts per peer, on a stream, what goes on it.
  std::uint64_t schedule = 0;  ///< A hash of the schedule.
  std::uint64_t chunk = 0;     ///< Bytes.
  /// A hash of the shares; 0 for equal shards. With counts per peer, on a stream, the count of what goes the other way.
  std::uint64_t shares = 0;
  std::uint32_t root = 0;  ///< UINT32_MAX without one.
  CollectiveKind kind = CollectiveKind::all_reduce;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::uint8_t has_counts = 0;  ///< 1: an all_to_all with counts per peer, which each pair of ranks compares.

  friend bool operator==(const CallHeader&, const CallHeader&) = default;
};
static_assert(sizeof(CallHeader) == 48);

/// "call 3: all_reduce of 1024 float, sum".
std::string describe(const CallHeader& header);

/// What differs between what two ranks called: "rank 2 called ..., rank 0 called ...: the counts differ".
/// Requires: they differ. With counts per peer, what is compared is of a stream from `peer` to `rank`.
std::string describe_mismatch(std::uint32_t rank, const CallHeader& ours, std::uint32_t peer, const CallHeader& theirs);

inline constexpr const char* count_mismatch_help =
    "exchange the counts first (exchange_counts), or look at how each rank comes to them";

/// Whether two headers are of calls with counts per peer that differ in the counts alone.
bool differ_in_counts(const CallHeader& a, const CallHeader& b);
/// "ranks disagree on the counts: rank 1 sends 7 float32 to rank 2, which expects 6 from it".
std::string describe_counts(const CallHeader& call, std::uint32_t from, std::uint64_t sent, std::uint32_t to,
                            std::uint64_t expected);

}  // namespace espalier::engine
