#pragma once

// Tested by: tests/unit/base/units_test.cpp

#include <compare>
#include <cstdint>

namespace espalier {

/// A number of bytes; exact.
struct Bytes {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(const Bytes&, const Bytes&) = default;
};

/// A span of time or a moment of simulated time in picoseconds; exact (2^63 ps are 106 days).
struct Picoseconds {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(const Picoseconds&, const Picoseconds&) = default;
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(count) * 1e-12; }
};

/// A rate in decimal bytes per second; exact. Zero stands for "not limited" where a member says so.
struct Bandwidth {
  std::int64_t bytes_per_second = 0;
  friend constexpr auto operator<=>(const Bandwidth&, const Bandwidth&) = default;
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
constexpr Picoseconds operator+(Picoseconds a, Picoseconds b) { return {a.count + b.count}; }
constexpr Picoseconds operator-(Picoseconds a, Picoseconds b) { return {a.count - b.count}; }

constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;

/// The largest message that a plan, a simulation or a run accepts: 1 PiB.
constexpr Bytes max_message_size{std::int64_t{1} << 50};

/// The time that `size` bytes keep a resource of rate `rate` busy, rounded up to whole picoseconds: never flatters a
/// plan. Requires: rate > 0 and a result below 2^63 ps; callers with untrusted sizes use `transfer_time_wide` first.
constexpr Picoseconds transfer_time(Bytes size, Bandwidth rate) {
  const __int128 numerator = static_cast<__int128>(size.count) * picoseconds_per_second;
  return {static_cast<std::int64_t>((numerator + rate.bytes_per_second - 1) / rate.bytes_per_second)};
}

/// As `transfer_time`, in 128 bits, for checking that a sum of times fits before it is formed.
constexpr __int128 transfer_time_wide(Bytes size, Bandwidth rate) {
  const __int128 numerator = static_cast<__int128>(size.count) * picoseconds_per_second;
  return (numerator + rate.bytes_per_second - 1) / rate.bytes_per_second;
}

}  // namespace espalier
