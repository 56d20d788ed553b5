#include "planners/packing/equal_packing.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/rational.h"
#include "planners/graph/work_budget.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/split/balance_switches.h"
#include "planners/packing/split/capacity_graph.h"
#include "planners/packing/split/demand_oracle.h"
#include "planners/packing/split/pack_trees.h"
#include "planners/packing/split/split_switches.h"

namespace espalier::planners {

namespace {

/// What searching and splitting may cost in arcs that flows pass: some seconds.
constexpr std::int64_t max_arcs_passed = std::int64_t{1} << 30U;

BigInteger floor_of(const Rational& value) { return numerator(value) / denominator(value); }

/// The times at which a link lets one more tree through, and what links let through then.
class WholeTrees {
 public:
  WholeTrees(const FlowNetwork& network, std::vector<std::int64_t> demands)
      : network_(network), demands_(std::move(demands)) {
    for (const FlowArc& arc : network.arcs()) {
      if (arc.capacity > 0) rates_.push_back(arc.capacity);
    }
    std::ranges::sort(rates_);
    rates_.erase(std::ranges::unique(rates_).begin(), rates_.end());
  }

  /// The last such time up to `time`; 0 where there is none.
  [[nodiscard]] Rational last_before(const Rational& time) const {
    Rational last = 0;
    for (const std::int64_t rate : rates_) last = std::max(last, Rational(floor_of(time * rate), rate));
    return last;
  }
  /// The first one after `time`.
  [[nodiscard]] Rational first_after(const Rational& time) const {
    std::optional<Rational> first;
    for (const std::int64_t rate : rates_) {
      const Rational next(floor_of(time * rate) + 1, rate);
      if (!first || next < *first) first = next;
    }
    return *first;
  }
  /// Whole trees by arc, as many into every switch as out of it; nothing where the demands do not pack into them.
  std::optional<std::vector<std::int64_t>> capacities_at(const Rational& time, WorkBudget& budget) {
    std::vector<std::int64_t> capacities;
    for (const FlowArc& arc : network_.arcs()) {
      capacities.push_back(floor_of(time * arc.capacity).convert_to<std::int64_t>());
    }
    DemandOracle oracle(network_.vertex_count(), network_.rank_vertices(), demands_, budget);
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      oracle.add_edge(network_.arcs()[i].tail, network_.arcs()[i].head, capacities[i]);
    }
    if (!oracle.is_satisfied()) return std::nullopt;
    if (switches_are_balanced(network_, capacities)) return capacities;
    auto trimmed = trim_to_balance(network_, capacities, demands_, budget);
    if (!trimmed) was_unbalanced_ = true;
    return trimmed;
  }
  /// Whether there was a time at which only the balance of a switch was missing.
  [[nodiscard]] bool was_unbalanced() const { return was_unbalanced_; }

  [[nodiscard]] const std::vector<std::int64_t>& demands() const { return demands_; }

 private:
  const FlowNetwork& network_;
  std::vector<std::int64_t> demands_;  ///< By rank.
  std::vector<std::int64_t> rates_;    ///< Each once, ascending.
  bool was_unbalanced_ = false;
};

/// Whether two links lead from one vertex to another: a tree that is cut over them may fit where a whole one does not.
bool has_parallel_arcs(const FlowNetwork& network) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  return std::ranges::any_of(network.arcs(),
                             [&](const FlowArc& arc) { return !seen.emplace(arc.tail, arc.head).second; });
}

/// The capacities of the least time, `least` at least, at which the demands pack.
std::optional<std::vector<std::int64_t>> min_capacities(WholeTrees& trees, const Rational& least, WorkBudget& budget) {
  constexpr int max_doublings = 10;
  auto found = trees.capacities_at(least, budget);
  if (found) return found;
  Rational low = least;
  Rational high = 2 * least;
  for (int doubling = 0; doubling < max_doublings && !(found = trees.capacities_at(high, budget)); ++doubling) {
    low = high;
    high *= 2;
  }
  if (!found) return std::nullopt;
  high = trees.last_before(high);
  while (!budget.is_spent() && trees.first_after(low) < high) {
    const Rational middle = (low + high) / 2;
    Rational tried = trees.last_before(middle);
    if (tried <= low) tried = trees.first_after(middle);
    if (tried >= high) break;
    if (auto capacities = trees.capacities_at(tried, budget)) {
      found = std::move(capacities);
      high = std::move(tried);
    } else {
      low = std::move(tried);
    }
  }
  return found;
}

}  // namespace

Result<EqualPacking> equal_packing(const PackingProblem& problem, std::uint32_t count) {
  if (problem.all_roots() && !problem.all_relay()) {
    return fail(ErrorCode::unsupported, "equal trees are not packed around ranks that must not relay", "");
  }
  const FlowNetwork& network = problem.network;
  std::vector<std::int64_t> demands(problem.rank_count(), problem.all_roots() ? count : 0);
  if (!problem.all_roots()) demands[problem.root.index()] = count;
  WorkBudget budget(max_arcs_passed);
  WholeTrees trees(network, std::move(demands));
  const Rational least(BigInteger(problem.cut.parts) * count, BigInteger(problem.cut.capacity));
  const auto capacities = min_capacities(trees, least, budget);
  const auto too_large = fail(ErrorCode::too_large, "equal trees are more work here than this planner does", "");
  if (budget.is_spent()) return too_large;
  if (!capacities) return fail(ErrorCode::unsupported, "whole trees leave a switch unbalanced", "");
  CapacityGraph graph(network, *capacities);
  if (!split_switches(graph, network, trees.demands(), budget)) return too_large;
  auto packed = pack_trees(rank_edges(network, graph), trees.demands(), budget);
  if (!packed) return too_large;
  return EqualPacking{realize_trees(network, graph, *packed), !trees.was_unbalanced() && !has_parallel_arcs(network)};
}

}  // namespace espalier::planners
