#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/waits.h"
#include "sim/fair/max_min.h"
#include "sim/run.h"

namespace espalier::sim {

/// With whom flows share while they are held back: Model::probe of the model fair (docs/fair.md, "Critical path").
/// While a probed flow has less than its full rate, its bottleneck is, of what it shares with others, that of which
/// least is left; what the flow lost is divided among the flows there, in proportion to what they carried over it
/// meanwhile. While it waits for its turn on its connection, it loses all to the flow that has it.
class FlowProbe {
 public:
  /// `capacities`: of the undisturbed resources, in the unit of rates; `is_disturbed`: rates change, or flows jitter.
  FlowProbe(std::vector<std::int64_t> capacities, bool is_disturbed)
      : capacities_(std::move(capacities)), is_disturbed_(is_disturbed) {}

  void probe(std::span<const Probe> probes);

  [[nodiscard]] bool is_on() const { return !lost_.empty(); }

  /// A flow of a chunk begins, or ends. Requires: settled up to that moment.
  void begin(FlowIndex flow, RunId run, ChunkId chunk);
  void end(FlowIndex flow);

  struct Flow {
    std::span<const std::uint32_t> resources;
    RunId run;
    Rank src;
    Rank dst;
    FlowIndex ahead = 0;  ///< Itself where it moves, else the one that has its connection.
  };
  /// Counts the time up to `now`, in which rates were as they are.
  void settle(std::int64_t now, const MaxMin& shares, const std::function<Flow(FlowIndex)>& look_up);

  [[nodiscard]] std::vector<Blame> take() const;

 private:
  __extension__ using Weight = unsigned __int128;

  struct Sharer {
    std::uint32_t resource = 0;
    RunId run;
    Rank src;
    Rank dst;
    auto operator<=>(const Sharer&) const = default;
  };
  /// What a probed flow could not carry, and who carried how much instead.
  struct Loss {
    Probe probe;
    Weight lost = 0;
    std::map<Sharer, Weight> weights;
  };
  struct Begun {
    FlowIndex flow = 0;
    std::uint32_t loss = 0;
  };
  static std::map<Sharer, std::int64_t> split(std::int64_t time, const std::map<Sharer, Weight>& weights);

  std::vector<std::int64_t> capacities_;
  bool is_disturbed_;
  std::vector<Loss> lost_;  // by probe
  std::map<std::tuple<RunId, TransferId, std::uint32_t>, std::uint32_t> index_;
  std::vector<Begun> begun_;
  std::int64_t settled_ = 0;
};

}  // namespace espalier::sim
