#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>

#include "base/random.h"

namespace espalier::sim {

/// Makes services take a little longer, each by a part that depends on the seed and on what is served alone, never on
/// the order in which things are worked out.
class Jitter {
 public:
  /// At most this part longer, in millionths. Requires: 0 to 1'000'000.
  Jitter(std::int32_t max_ppm, std::uint64_t seed)
      : most_((static_cast<std::uint64_t>(max_ppm) << 32U) / 1'000'000), seed_(mix(seed)) {}

  [[nodiscard]] bool is_on() const { return most_ != 0; }

  /// How much longer than `busy` the service takes: evenly distributed in [0, most], rounded down to whole picoseconds.
  /// `order` and `chunk` say what is served and `step` where on its way.
  [[nodiscard]] std::int64_t extra(std::int64_t busy, std::uint32_t order, std::uint32_t chunk,
                                   std::uint32_t step) const {
    const std::uint64_t key = (std::uint64_t{order} << 32U) | chunk;
    const std::uint64_t random = mix(key + seed_ + step * 0xd1342543de82ef95U) >> 32U;
    const std::uint64_t part = (most_ * random) >> 32U;  // of 2^32
    return static_cast<std::int64_t>((static_cast<unsigned __int128>(busy) * part) >> 32U);
  }

 private:
  static std::uint64_t mix(std::uint64_t x) { return Random(x).next(); }

  std::uint64_t most_;  // of 2^32
  std::uint64_t seed_;
};

}  // namespace espalier::sim
