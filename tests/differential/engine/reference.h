#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/element.h"
#include "schedule/collective.h"

namespace espalier::test {

/// A call as all its ranks make it, with data that tells every element of every rank from every other.
struct WideCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ReduceOperation operation = ReduceOperation::sum;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  std::vector<std::size_t> shards;  ///< Elements of each rank's shard, or of each block of all_to_all; else count only.
  std::vector<std::int64_t> shares;  ///< As the caller names them; none where the shards are equal.
  std::size_t count = 0;             ///< Elements of the message.
  std::uint64_t seed = 0;

  [[nodiscard]] std::size_t begin(std::size_t rank) const {
    std::size_t begin = 0;
    for (std::size_t each = 0; each < rank; ++each) begin += shards[each];
    return begin;
  }
  [[nodiscard]] std::size_t send_count(std::uint32_t rank) const {
    switch (kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::gather: return shards[rank];
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter: return rank == root ? count : 0;
      default: return count;
    }
  }
  [[nodiscard]] std::size_t receive_count(std::uint32_t rank) const {
    switch (kind) {
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter: return shards[rank];
      case CollectiveKind::reduce:
      case CollectiveKind::gather: return rank == root ? count : 0;
      default: return count;
    }
  }
  /// Where in place the send buffer begins, in elements of the receive buffer; nothing where the rank has no such
  /// place.
  [[nodiscard]] std::optional<std::ptrdiff_t> in_place_shift(std::uint32_t rank) const {
    if (send_count(rank) == 0 || receive_count(rank) == 0) return std::nullopt;
    const auto own = shards.empty() ? std::ptrdiff_t{0} : static_cast<std::ptrdiff_t>(begin(rank));
    switch (kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
      case CollectiveKind::broadcast: return 0;
      case CollectiveKind::all_gather:
      case CollectiveKind::gather: return own;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter: return -own;
      default: return std::nullopt;
    }
  }
};

/// The finalizer of SplitMix64, which maps different numbers to different numbers.
inline std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
  return number ^ (number >> 31U);
}

/// The bits of an element that a rank brings: different for every element of every rank of a call.
inline std::uint64_t bits_of(const WideCall& call, std::uint32_t rank, std::size_t index) {
  return mixed((call.seed << 40U) + (std::uint64_t{rank} << 32U) + index);
}

/// What a rank brings as an element of its send buffer: as many of those bits as the operation leaves exact in any
/// order. Unsigned sums and products wrap. Products of others are of one wide factor, whose rank differs by element,
/// and ones. Sums of up to 8 ranks need three bits more, which signed types and averages keep free.
template <class T>
T value_of(const WideCall& call, std::uint32_t rank, std::size_t index) {
  constexpr unsigned bits = std::is_floating_point_v<T> ? std::numeric_limits<T>::digits : 8 * sizeof(T);
  const std::uint64_t raw = bits_of(call, rank, index);
  if constexpr (!std::is_floating_point_v<T>) {
    if (!reduces(call.kind)) return static_cast<T>(raw);
  }
  if (reduces(call.kind) && call.operation == ReduceOperation::prod) {
    if constexpr (std::is_unsigned_v<T>) return static_cast<T>(raw | 1U);
    if (bits_of(call, 99, index) % call.ranks != rank) return T{1};
  }
  if (std::is_unsigned_v<T> && call.operation != ReduceOperation::avg) return static_cast<T>(raw);
  return static_cast<T>(raw >> (64 - bits + 4));
}

/// What all ranks' elements make together.
template <class T>
T combined(const WideCall& call, std::size_t index) {
  T result = value_of<T>(call, 0, index);
  for (std::uint32_t rank = 1; rank < call.ranks; ++rank) {
    const T value = value_of<T>(call, rank, index);
    switch (call.operation) {
      case ReduceOperation::min: result = std::min(result, value); break;
      case ReduceOperation::max: result = std::max(result, value); break;
      case ReduceOperation::prod: result = static_cast<T>(result * value); break;
      default: result = static_cast<T>(result + value);
    }
  }
  if (call.operation != ReduceOperation::avg) return result;
  return static_cast<T>(result / static_cast<T>(call.ranks));
}

/// What a rank has to receive, as docs/schedule.md promises it, element by element.
template <class T>
T expected(const WideCall& call, std::uint32_t rank, std::size_t index) {
  switch (call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce: return combined<T>(call, index);
    case CollectiveKind::reduce_scatter: return combined<T>(call, call.begin(rank) + index);
    case CollectiveKind::broadcast: return value_of<T>(call, call.root, index);
    case CollectiveKind::scatter: return value_of<T>(call, call.root, call.begin(rank) + index);
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: {
      std::uint32_t owner = 0;
      while (index >= call.shards[owner]) index -= call.shards[owner++];
      return value_of<T>(call, owner, index);
    }
    case CollectiveKind::all_to_all: {
      const auto src = static_cast<std::uint32_t>(index / call.shards[0]);
      return value_of<T>(call, src, rank * call.shards[0] + index % call.shards[0]);
    }
    case CollectiveKind::send_recv: return value_of<T>(call, (rank + call.ranks - 1) % call.ranks, index);
  }
  return T{};
}

/// Equal, but for the roundings of a float's average: the quotient's, and that of the reciprocal it may be made with.
template <class T>
bool is_right(const WideCall& call, T actual, T wanted) {
  if constexpr (std::is_floating_point_v<T>) {
    if (reduces(call.kind) && call.operation == ReduceOperation::avg) {
      return std::abs(actual - wanted) <= 2 * std::numeric_limits<T>::epsilon() * std::abs(wanted);
    }
  }
  return actual == wanted;
}

}  // namespace espalier::test
