#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <algorithm>
#include <cstdint>
#include <limits>

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

  [[nodiscard]] std::int64_t begin() const { return flow().entry; }
  [[nodiscard]] std::int64_t end() const { return flow().entry + flow().busy; }
  /// What its source's processor did, and its destination's; null where messages cost these nothing.
  [[nodiscard]] const ChunkTrace::Step* source(const Network& network) const {
    return handled(network, recorded.steps.front());
  }
  [[nodiscard]] const ChunkTrace::Step* destination(const Network& network) const {
    return handled(network, recorded.steps[path->end - path->begin - 1]);
  }
  [[nodiscard]] bool is_reduced() const { return recorded.steps.size() > path->end - path->begin; }
  [[nodiscard]] std::int64_t arrived() const {
    return std::max(end(), recorded.steps.back().entry + recorded.steps.back().busy);
  }
  [[nodiscard]] std::int64_t latency(const Network& network) const {
    std::int64_t latency = 0;
    for (std::uint32_t i = 0; i < path->end - path->begin; ++i) {
      latency += network.resources()[recorded.steps[i].resource].latency;
    }
    return latency;
  }
  [[nodiscard]] std::int64_t departed(const Network& network) const { return end() - latency(network); }
  /// The first of the slowest of its links and backplanes.
  [[nodiscard]] std::uint32_t slowest(const Network& network) const {
    const auto way = recorded.steps.begin() + (path->end - path->begin);
    const auto rate = [&](const ChunkTrace::Step& step) {
      const bool limits = !network.is_processor(step.resource);
      return limits ? network.resources()[step.resource].bytes_per_second : std::numeric_limits<std::int64_t>::max();
    };
    return std::ranges::min_element(recorded.steps.begin(), way, {}, rate)->resource;
  }

 private:
  [[nodiscard]] const ChunkTrace::Step& flow() const { return recorded.steps[path->first_link - path->begin]; }
  static const ChunkTrace::Step* handled(const Network& network, const ChunkTrace::Step& step) {
    return network.is_processor(step.resource) ? &step : nullptr;
  }
};

}  // namespace espalier::sim
