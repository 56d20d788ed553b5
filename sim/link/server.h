#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/core/jitter.h"
#include "sim/core/network.h"
#include "sim/core/rate_profile.h"
#include "sim/limits.h"

namespace espalier::sim {

/// A resource at work.
struct Server {
  std::int64_t free_at = 0;  ///< When it has served everything that asked so far; `never` when it is dead for good.
  std::int64_t latency = 0;
  std::int64_t bytes_per_second = 1;
  std::int64_t each = 0;   ///< Resource::each.
  std::int64_t bytes = 0;  ///< Served so far.
  std::int64_t busy = 0;   ///< Time spent serving so far.
  std::int64_t known_bytes = 0;
  std::int64_t known_time = 0;
  std::uint32_t profile = RateProfiles::none;

  /// transfer_time of a chunk. Most chunks of a resource have one of few sizes, so the last answer is kept.
  [[nodiscard]] std::int64_t service_time(std::int64_t chunk_bytes) {
    if (each > 0) return each;
    if (chunk_bytes != known_bytes) {
      known_bytes = chunk_bytes;
      known_time = transfer_time(Bytes{chunk_bytes}, Bandwidth{bytes_per_second}).count;
    }
    return known_time;
  }

  /// Serves a chunk from `entry` on; returns when it is done with it, which may be `never`.
  [[nodiscard]] std::int64_t serve(std::int64_t entry, std::int64_t chunk_bytes, std::int64_t duration,
                                   const RateProfiles& profiles) {
    if (profile == RateProfiles::none) {
      free_at = entry + duration;
    } else {
      free_at = entry == never ? never : profiles.profiles[profile - 1].finish(entry, duration);
      if (free_at == never) return never;
    }
    bytes += chunk_bytes;
    busy += free_at - entry;
    return free_at;
  }
};

/// The servers of a network's resources, before anything is served.
[[nodiscard]] std::vector<Server> make_servers(const Network& network, const RateProfiles& profiles);

}  // namespace espalier::sim
