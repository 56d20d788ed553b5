#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/units.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/conditions.h"
#include "sim/core/chunk_in_service.h"
#include "sim/core/jitter.h"
#include "sim/core/network.h"
#include "sim/fair/fair_rates.h"

namespace espalier::sim {

/// Bytes x picoseconds per second x scale: whole numbers, whatever the rates.
__extension__ using FlowWork = __int128;

/// Requires: a result that fits, and `above` not negative.
[[nodiscard]] inline std::int64_t divide_up(FlowWork above, std::int64_t below) {
  return static_cast<std::int64_t>((above + below - 1) / below);
}

/// What a chunk costs in the model `fair` (docs/fair.md), whoever says which chunk comes next: the event loop
/// (FairModel) or program order (ContentionFreeFlows). Who shares what with whom is theirs.
class FlowService {
 public:
  FlowService(const Network& network, const Conditions& conditions)
      : network_(network),
        jitter_(conditions.jitter_ppm, conditions.seed),
        scale_(pick_rate_scale(network)),
        free_at_(network.resources().size(), 0) {}

  /// Rates are counted in bytes per second / scale.
  [[nodiscard]] std::int64_t scale() const { return scale_; }
  [[nodiscard]] bool has_jitter() const { return jitter_.is_on(); }

  /// What a chunk has to carry through its links.
  [[nodiscard]] FlowWork work(const ChunkInService& chunk) const {
    FlowWork work = static_cast<FlowWork>(chunk.wire) * picoseconds_per_second * scale_;
    if (jitter_.is_on()) {
      const std::int64_t part = jitter_.extra(std::int64_t{1} << 32U, chunk.order, chunk.chunk, 0);  // of 2^32
      work += (work >> 32U) * part;
    }
    return work;
  }

  /// Of all links of a way.
  [[nodiscard]] std::int64_t latency(const CompiledSchedule& compiled, const Path& path) const {
    std::int64_t latency = 0;
    for (std::uint32_t i = path.begin; i < path.end; ++i) {
      latency += network_.resources()[compiled.steps()[i]].latency;
    }
    return latency;
  }

  /// The step of a way at which its source's processor handles a message, and the one of its destination's; `no_step`
  /// where messages cost these nothing.
  [[nodiscard]] std::uint32_t source_step(const CompiledSchedule& compiled, const Path& path) const {
    return network_.is_processor(compiled.steps()[path.begin]) ? path.begin : no_step;
  }
  [[nodiscard]] std::uint32_t destination_step(const CompiledSchedule& compiled, const Path& path) const {
    return network_.is_processor(compiled.steps()[path.end - 1]) ? path.end - 1 : no_step;
  }
  static constexpr std::uint32_t no_step = std::numeric_limits<std::uint32_t>::max();

  /// When one that serves first come, first served begins with a chunk, and is done with it.
  struct Served {
    std::int64_t begin = 0;
    std::int64_t done = 0;
  };
  /// A processor handles a chunk that asks at `time`, the `step`-th of its way, after all that it was handed before.
  Served handle(std::uint32_t processor, const ChunkInService& chunk, std::uint32_t step, std::int64_t time) {
    std::int64_t duration = network_.resources()[processor].each;
    if (jitter_.is_on()) duration += jitter_.extra(duration, chunk.order, chunk.chunk, step);
    return serve(processor, time, duration);
  }
  /// Adds a chunk whose last byte is there at `time`, the `step`-th of its way, after all that came before it.
  Served reduce(std::uint32_t resource, const ChunkInService& chunk, std::uint32_t step, std::int64_t time) {
    const Bandwidth rate{network_.resources()[resource].bytes_per_second};
    std::int64_t duration = transfer_time(Bytes{chunk.payload}, rate).count;
    if (jitter_.is_on()) duration += jitter_.extra(duration, chunk.order, chunk.chunk, step);
    return serve(resource, time, duration);
  }
  /// When a resource is done with all that came so far.
  [[nodiscard]] std::int64_t& free_at(std::uint32_t resource) { return free_at_[resource]; }

 private:
  Served serve(std::uint32_t resource, std::int64_t time, std::int64_t duration) {
    const std::int64_t begin = std::max(time, free_at_[resource]);
    return {begin, free_at_[resource] = begin + duration};
  }

  const Network& network_;
  Jitter jitter_;
  std::int64_t scale_;
  std::vector<std::int64_t> free_at_;  // by resource
};

}  // namespace espalier::sim
