#pragma once

// Tested by: tests/unit/probe/probe_plan_test.cpp

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "probe/findings.h"
#include "probe/pair_paths.h"
#include "topology/topology.h"

namespace espalier::probe {

/// Pairs that are measured at the same time, as places among the plan's paths. No rank is in two of them, and together
/// they ask no hop for more than it has.
using Round = std::vector<std::uint32_t>;

struct PlanLimits {
  std::uint32_t max_rounds = 64;  ///< In all.
};

/// Which pairs to measure next: first rounds that cross every hop that pairs cross, then, where pairs were slow, rounds
/// that part the hops which may be to blame (group testing), until no pair tells what is left apart and each slow pair
/// was slow twice. Deterministic: whoever notes the same results gets the same rounds.
class ProbePlan {
 public:
  /// `topology` outlives the plan. Cost: find_pair_paths; then for each round O(paths x hops of a path).
  explicit ProbePlan(const Topology& topology, PlanLimits limits = {});
  ProbePlan(const ProbePlan&) = delete;
  ProbePlan& operator=(const ProbePlan&) = delete;

  [[nodiscard]] const Hops& hops() const { return hops_; }
  [[nodiscard]] std::span<const PairPath> paths() const { return paths_; }
  /// The rounds that are run whatever they give.
  [[nodiscard]] const std::vector<Round>& first_rounds() const { return first_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }

  /// The next round, or nothing when all is measured.
  [[nodiscard]] std::optional<Round> next();
  /// What the round that `next` gave last has measured, in its order.
  void note(std::span<const FlowResult> results);

 private:
  class RoundBuilder;
  void plan_first_rounds();
  [[nodiscard]] Round plan_parting_round();
  /// A pair that crosses some of these hops and not all, and that clears those it crosses if they are sound.
  [[nodiscard]] std::optional<std::uint32_t> find_parting(const Suspect& suspect, const std::set<std::uint32_t>& avoid,
                                                          const RoundBuilder& round) const;

  PlanLimits limits_;
  Hops hops_;
  std::vector<PairPath> paths_;
  std::vector<Round> first_;
  Findings findings_;
  std::set<std::uint32_t> tried_;
  std::set<std::uint32_t> repeated_;
  Round current_;
};

}  // namespace espalier::probe
