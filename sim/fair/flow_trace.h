#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/compiled/compiled_schedule.h"
#include "sim/core/history.h"
#include "sim/core/network.h"

namespace espalier::sim {

/// One chunk's way, as FairModel recorded it.
struct FlowTrace {
  const Path* path = nullptr;
  ChunkTrace recorded;  // every step's `entry` and `busy` are the flow's, or the reduction's

  void read(const History& history, ChunkId chunk) {
    path = &history.compiled().path(history.compiled().schedule().transfers[chunk.transfer.index()]);
    history.trace(chunk, recorded);
  }

  [[nodiscard]] std::int64_t begin() const { return recorded.steps.front().entry; }
  [[nodiscard]] std::int64_t end() const { return recorded.steps.front().entry + recorded.steps.front().busy; }
  [[nodiscard]] bool is_reduced() const { return recorded.steps.size() > path->end - path->begin; }
  [[nodiscard]] std::int64_t arrived() const { return recorded.steps.back().entry + recorded.steps.back().busy; }
  [[nodiscard]] std::int64_t latency(const Network& network) const {
    std::int64_t latency = 0;
    for (std::uint32_t i = 0; i < path->end - path->begin; ++i) {
      const Resource& resource = network.resources()[recorded.steps[i].resource];
      latency += resource.latency + resource.each;
    }
    return latency;
  }
  [[nodiscard]] std::int64_t departed(const Network& network) const { return end() - latency(network); }
  /// The first of the slowest of its links and backplanes.
  [[nodiscard]] std::uint32_t slowest(const Network& network) const {
    const auto way = recorded.steps.begin() + (path->end - path->begin);
    const auto rate = [&](const ChunkTrace::Step& step) { return network.resources()[step.resource].bytes_per_second; };
    return std::ranges::min_element(recorded.steps.begin(), way, {}, rate)->resource;
  }
};

}  // namespace espalier::sim
