#pragma once

// Tested by: tests/unit/engine/check/data_case_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/element.h"
#include "engine/check/pattern.h"
#include "schedule/collective.h"

namespace espalier::engine {

/// Known data for a collective: what each rank sends, and what it has to receive. Values are small whole numbers, so
/// that sums, products, minima and maxima are exact in every type and in any order, and so is the check.
struct DataCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  std::size_t count = 0;   ///< The message size in elements.
  std::uint64_t seed = 0;  ///< Other data for other iterations.
  /// Of unequal shards, one per rank, or the traffic matrix of an all_to_all, row by row (Collective::shares); none
  /// where all are equal.
  std::vector<std::int64_t> shares = {};

  /// Elements of a rank's buffers.
  [[nodiscard]] std::size_t send_count(std::uint32_t rank) const;
  [[nodiscard]] std::size_t receive_count(std::uint32_t rank) const;
  /// Where in place the send buffer begins in the receive buffer (or, negative, the receive buffer in the send buffer),
  /// in elements; nothing for collectives that cannot work in place.
  [[nodiscard]] std::optional<std::ptrdiff_t> in_place_shift(std::uint32_t rank) const;
};

/// Known data of a buffer: its ranges, and the table of which they are windows (engine/check/pattern.h).
struct KnownData {
  std::vector<std::byte> table;  ///< Elements as they are stored.
  std::vector<double> numbers;   ///< The same before they were rounded to the type.
  std::vector<PatternRange> ranges;
  std::uint64_t salt = 0;
};

/// What the rank sends, and what it has to receive.
KnownData sent_data(const DataCase& data, std::uint32_t rank);
KnownData expected_data(const DataCase& data, std::uint32_t rank);

/// Writes what the rank sends.
void fill_send_buffer(const DataCase& data, std::uint32_t rank, void* send);

/// An element that is not what it should be.
struct WrongElement {
  std::size_t index = 0;
  double expected = 0;
  double actual = 0;
};

struct CheckResult {
  std::size_t wrong = 0;
  WrongElement first;  ///< Of those that are wrong.
};

/// Compares what the rank received; averages to a rounding of the type, all else exactly.
CheckResult check_receive_buffer(const DataCase& data, std::uint32_t rank, const void* receive);

}  // namespace espalier::engine
