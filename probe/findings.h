#pragma once

// Tested by: tests/unit/probe/probe_plan_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probe/pair_paths.h"

namespace espalier::probe {

/// What one pair gave in one round.
struct FlowResult {
  double rate = 0;     ///< Bytes per second: the median of the transfers.
  double slowest = 0;  ///< Of its transfers.
  double fastest = 0;
  double latency = 0;  ///< Seconds for a message of a few bytes one way; 0 where it was not measured.
};

/// One pair measured in one round.
struct MeasuredFlow {
  std::uint32_t path = 0;
  std::uint32_t round = 0;
  FlowResult result;
};

/// What all pairs of one kind gave.
struct KindFinding {
  std::string kind;
  double described = 0;  ///< Bytes per second.
  double rate = 0;       ///< Median over its flows.
  double slowest = 0;    ///< Over its flows' medians.
  double fastest = 0;
  double latency = 0;  ///< Median, seconds.
  std::size_t flows = 0;
};

/// Hops that no measured pair tells apart, one of which slows down what crosses it.
struct Suspect {
  std::vector<std::string> parts;  ///< As find_parts names them: the node that they meet in first, where there is one.
  double left = 1;                 ///< What is left of the rate that pairs like these have.
  std::vector<std::uint32_t> hops;
  std::vector<std::uint32_t> flows;  ///< Slow ones that cross it, by their place among all that were measured.
  bool is_confirmed = false;         ///< Seen in two rounds.
};

/// What was measured of a machine so far, and what follows from it.
class Findings {
 public:
  Findings(const Topology& topology, const Hops& hops, std::span<const PairPath> paths)
      : topology_(&topology), hops_(&hops), paths_(paths), carried_(hops.count()), limit_(hops.count()) {}

  /// All that one round measured.
  void add(std::span<const std::uint32_t> round, std::span<const FlowResult> results);

  [[nodiscard]] const std::vector<MeasuredFlow>& flows() const { return flows_; }
  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
  /// The most bytes per second that passed a hop in a round.
  [[nodiscard]] double carried(std::uint32_t hop) const { return carried_[hop]; }
  /// The same of rounds in which it was what limits the pairs across it, as described; none where it never was.
  [[nodiscard]] std::optional<double> measured_rate(std::uint32_t hop) const;

  /// In the order in which kinds were measured first.
  [[nodiscard]] std::vector<KindFinding> kinds() const;
  /// What part of their described rates pairs of this kind give; nothing while too few were measured to say.
  [[nodiscard]] std::optional<double> usual_part(const std::string& kind) const;

  /// Fewest suspects that explain all slow flows. A flow is slow that is well below others of its kind; a hop is
  /// cleared when it carried more, in any round, than a fault there would have let it.
  [[nodiscard]] std::vector<Suspect> suspects() const;

  /// What passed a hop with a flow of this path at this rate.
  [[nodiscard]] static double load(const PairPath& path, std::uint32_t hop, double rate);
  /// How much more has to pass a hop for it to be cleared.
  static constexpr double clearance = 1.15;

 private:
  struct Group;
  [[nodiscard]] bool is_slow(const MeasuredFlow& flow) const;
  [[nodiscard]] std::vector<std::uint32_t> candidates(const MeasuredFlow& flow) const;
  void name(Suspect& suspect) const;

  const Topology* topology_;
  const Hops* hops_;
  std::span<const PairPath> paths_;
  std::vector<MeasuredFlow> flows_;
  std::vector<double> carried_, limit_;
  std::uint32_t rounds_ = 0;
};

}  // namespace espalier::probe
