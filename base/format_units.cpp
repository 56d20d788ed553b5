#include "base/format_units.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace espalier {
namespace {

struct Unit {
  std::int64_t size;
  std::string_view name;
};

/// The value in the largest unit that needs at most three decimals, without trailing zeros.
template <std::size_t n>
std::string in_largest_unit(std::int64_t value, const std::array<Unit, n>& units) {
  for (const Unit& unit : units) {
    const std::int64_t thousandth = unit.size >= 1000 ? unit.size / 1000 : unit.size;
    if (value < unit.size || value % thousandth != 0) continue;
    std::string decimals = fmt::format("{:03}", value % unit.size / thousandth);
    while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
    return fmt::format("{}{}{} {}", value / unit.size, decimals.empty() ? "" : ".", decimals, unit.name);
  }
  return fmt::format("{} {}", value, units.back().name);
}

}  // namespace

std::string format_bandwidth(Bandwidth bandwidth) {
  constexpr std::array units = {Unit{1'000'000'000, "GB/s"}, Unit{1'000'000, "MB/s"}, Unit{1000, "kB/s"},
                                Unit{1, "B/s"}};
  return in_largest_unit(bandwidth.bytes_per_second, units);
}

std::string format_latency(Picoseconds latency) {
  if (latency.count == 0) return "0 ns";
  constexpr std::array units = {Unit{1'000'000'000'000, "s"}, Unit{1'000'000'000, "ms"}, Unit{1'000'000, "us"},
                                Unit{1000, "ns"}, Unit{1, "ps"}};
  return in_largest_unit(latency.count, units);
}

std::string format_size(Bytes size) {
  constexpr std::array units = {Unit{std::int64_t{1} << 50, "PiB"}, Unit{std::int64_t{1} << 40, "TiB"},
                                Unit{std::int64_t{1} << 30, "GiB"}, Unit{std::int64_t{1} << 20, "MiB"},
                                Unit{std::int64_t{1} << 10, "KiB"}};
  for (const Unit& unit : units) {
    if (size.count >= unit.size && size.count % unit.size == 0) {
      return fmt::format("{} {}", size.count / unit.size, unit.name);
    }
  }
  return fmt::format("{} B", size.count);
}

std::string format_rounded_size(Bytes size) {
  const auto bytes = static_cast<double>(size.count);
  if (bytes < 1024) return fmt::format("{} B", size.count);
  if (bytes < 1024.0 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  if (bytes < 1024.0 * 1024 * 1024) return fmt::format("{:.1f} MiB", bytes / 1024 / 1024);
  return fmt::format("{:.1f} GiB", bytes / 1024 / 1024 / 1024);
}

std::string format_duration(Picoseconds duration) {
  const auto count = static_cast<double>(duration.count);
  if (duration.count < 1000) return fmt::format("{} ps", duration.count);
  if (duration.count < 1'000'000) return fmt::format("{:.4g} ns", count / 1e3);
  if (duration.count < 1'000'000'000) return fmt::format("{:.4g} us", count / 1e6);
  if (duration.count < picoseconds_per_second) return fmt::format("{:.4g} ms", count / 1e9);
  return fmt::format("{:.6g} s", count / 1e12);
}

}  // namespace espalier
