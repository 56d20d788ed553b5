#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include "base/units.h"

/// Exact sizes and rates: `using namespace espalier::literals;`, then 64_KiB, 1_GiB, 25_GBps, 400_Gbps.
namespace espalier::literals {

consteval Bytes operator""_B(unsigned long long count) { return {static_cast<std::int64_t>(count)}; }
consteval Bytes operator""_KiB(unsigned long long count) { return {static_cast<std::int64_t>(count << 10U)}; }
consteval Bytes operator""_MiB(unsigned long long count) { return {static_cast<std::int64_t>(count << 20U)}; }
consteval Bytes operator""_GiB(unsigned long long count) { return {static_cast<std::int64_t>(count << 30U)}; }
/// Decimal gigabytes per second, as links are sold.
consteval Bandwidth operator""_GBps(unsigned long long rate) {
  return {static_cast<std::int64_t>(rate) * 1'000'000'000};
}
/// Decimal gigabits per second, as NICs are sold.
consteval Bandwidth operator""_Gbps(unsigned long long rate) { return {static_cast<std::int64_t>(rate) * 125'000'000}; }

}  // namespace espalier::literals
