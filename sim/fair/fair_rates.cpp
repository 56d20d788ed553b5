#include "sim/fair/fair_rates.h"

#include <algorithm>

#include "sim/limits.h"

namespace espalier::sim {
namespace {

/// Numbers with many divisors, so that shares of few flows come out whole: 2^6 3^3 5^2 7 11 13, the multiples of all
/// numbers up to 16, 10 and 5.
constexpr std::int64_t scales[] = {43'243'200, 720'720, 2'520, 60, 1};

}  // namespace

std::int64_t pick_rate_scale(const Network& network) {
  std::int64_t fastest = 1;
  for (const Resource& resource : network.resources()) fastest = std::max(fastest, resource.bytes_per_second);
  return *std::ranges::find_if(scales, [&](std::int64_t scale) { return fastest <= (never - 1) / scale; });
}

std::vector<std::int64_t> scaled_capacities(const Network& network, std::int64_t scale) {
  std::vector<std::int64_t> capacities;
  for (const Resource& resource : network.resources()) capacities.push_back(resource.bytes_per_second * scale);
  return capacities;
}

std::int64_t scaled_capacity(const Network& network, std::int64_t scale, const RateChange& change) {
  const __int128 whole = static_cast<__int128>(network.resources()[change.link.index()].bytes_per_second) * scale;
  const auto part = static_cast<std::int64_t>(whole * change.rate_ppm / whole_ppm);
  return change.rate_ppm == 0 ? 0 : std::max<std::int64_t>(part, 1);
}

}  // namespace espalier::sim
