#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/conditions.h"
#include "sim/core/chunk_in_service.h"
#include "sim/core/jitter.h"
#include "sim/core/network.h"
#include "sim/core/rate_profile.h"
#include "sim/limits.h"
#include "sim/link/server.h"
#include "sim/model.h"

namespace espalier::sim {

/// How resources serve chunks in the model `link` (docs/simulator.md, "Service"), whoever says which chunk comes next:
/// the event loop (LinkModel), program order (ContentionFreeRun) or a ring (RingSimulation).
class LinkService {
 public:
  LinkService(const Network& network, const Conditions& conditions)
      : jitter_(conditions.jitter_ppm, conditions.seed),
        profiles_(conditions.changes, network.link_count()),
        servers_(make_servers(network, profiles_)) {}
  LinkService(const LinkService&) = delete;
  LinkService& operator=(const LinkService&) = delete;

  /// When a chunk passed a resource.
  struct Passage {
    std::int64_t entry = 0;      ///< The resource begins to serve it.
    std::int64_t done = 0;       ///< It has served it; `never` when it died before, and the rest says nothing.
    std::int64_t left = 0;       ///< The last byte leaves.
    std::int64_t last_byte = 0;  ///< The last byte is at the next resource.
    std::int64_t head = 0;       ///< The first byte is.
  };

  /// Serves a chunk at the `step`-th resource of its way, after all that the resource served before. It asks at
  /// `asked`; its last byte is there at `last_byte`. `reduces`: the resource adds what came, and what protocols add is
  /// gone.
  Passage serve(std::uint32_t resource, const ChunkInService& chunk, std::uint32_t step, bool reduces,
                std::int64_t asked, std::int64_t last_byte) {
    Server& server = servers_[resource];
    const std::int64_t bytes = reduces ? chunk.payload : chunk.wire;
    std::int64_t duration = server.service_time(bytes);
    if (jitter_.is_on()) duration += jitter_.extra(duration, chunk.order, chunk.chunk, step);
    Passage passage;
    passage.entry = std::max(asked, server.free_at);
    passage.done = server.serve(passage.entry, bytes, duration, profiles_);
    if (passage.done == never) return passage;
    passage.left = std::max(passage.done, last_byte);
    passage.last_byte = passage.left + server.latency;
    // A processor lets go of a chunk when it is done with it.
    passage.head = (server.each > 0 ? passage.left : passage.entry) + server.latency;
    return passage;
  }

  /// Serves `count` more chunks like the latest one, each `shift` after the one before. Requires: is_uniform.
  void repeat(std::uint32_t resource, const ChunkInService& chunk, bool reduces, std::uint32_t count,
              std::int64_t shift) {
    Server& server = servers_[resource];
    const std::int64_t bytes = reduces ? chunk.payload : chunk.wire;
    server.free_at += count * shift;
    server.bytes += count * bytes;
    server.busy += count * server.service_time(bytes);
  }

  /// Whether services depend on differences of times only: no jitter, no rates that change.
  [[nodiscard]] bool is_uniform() const { return !jitter_.is_on() && profiles_.profiles.empty(); }
  [[nodiscard]] const Server& server(std::uint32_t resource) const { return servers_[resource]; }
  [[nodiscard]] const std::vector<Server>& servers() const { return servers_; }
  /// What the first `count` resources carried: a network's links.
  [[nodiscard]] std::vector<LinkUse> uses(std::uint32_t count) const {
    std::vector<LinkUse> uses;
    uses.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) uses.push_back({servers_[i].bytes, {servers_[i].busy}});
    return uses;
  }

 private:
  Jitter jitter_;
  RateProfiles profiles_;
  std::vector<Server> servers_;
};

}  // namespace espalier::sim
