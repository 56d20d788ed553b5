#include "planners/packing/problem.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "planners/packing/split/balance_switches.h"

namespace espalier::planners {

namespace {

/// The sum of capacities and of demands stays below this, so that flows fit 64 bits.
constexpr __int128 max_flow = std::int64_t{1} << 60U;
/// Capacities are refined up to this much below, which leaves room for scaling them to their rate.
constexpr __int128 max_refined_rate = std::int64_t{1} << 24U;

/// The network for trees of one root where some ranks must not relay: nothing leaves these, and the root is like any
/// other.
FlowNetwork without_relays(const Topology& topology, Direction direction, Rank root) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  nodes[topology.node_of(root).index()].relay = true;
  auto made = Topology::make(topology.name(), std::move(nodes), {topology.links().begin(), topology.links().end()});
  ESPALIER_CHECK(made.has_value(), "a topology stays one when a rank may relay");
  const FlowNetwork network(*made, direction);
  std::vector<bool> is_source(network.vertex_count(), false);
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) {
    is_source[network.source_of(Rank(rank))] = !made->may_relay(Rank(rank));
  }
  std::vector<std::int64_t> capacities;
  for (const FlowArc& arc : network.arcs()) capacities.push_back(is_source[arc.tail] ? 0 : arc.capacity);
  return network.with_capacities(capacities);
}

/// Scales a network so that at the rate of its tightest cut every root's demand is a whole number, as small as it can
/// be.
Result<ScaledNetwork> scale_to_rate(const FlowNetwork& network, const CutRate& cut, Rank root,
                                    std::span<const std::int64_t> shares) {
  const auto share_of = [&](std::size_t rank) -> std::int64_t {
    if (!root.is_none()) return root == Rank(rank) ? 1 : 0;
    return shares.empty() ? 1 : shares[rank];
  };
  const __int128 common = std::gcd(cut.parts, cut.capacity);
  const __int128 factor = cut.parts / common;
  __int128 unit = cut.capacity / common;
  for (const FlowArc& arc : network.arcs()) unit = std::gcd(unit, static_cast<__int128>(arc.capacity));
  const __int128 demand = cut.capacity / common / unit;
  __int128 sum = 0;
  for (const FlowArc& arc : network.arcs()) sum += arc.capacity / unit * factor;
  __int128 share_sum = 0;
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) share_sum += share_of(rank);
  if (sum >= max_flow || demand >= max_flow / share_sum) {
    return fail(ErrorCode::too_large, "the link rates have so fine a common divisor that the trees' weights pass 2^60",
                "round the rates, or use the planner ring or tree");
  }
  ScaledNetwork scaled;
  for (const FlowArc& arc : network.arcs()) {
    scaled.capacities.push_back(static_cast<std::int64_t>(arc.capacity / unit * factor));
  }
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) {
    scaled.demands.push_back(static_cast<std::int64_t>(demand) * share_of(rank));
  }
  return scaled;
}

/// Multiplies capacities by a power of two where they fit, so that they can shrink in proportion.
void refine(std::vector<std::int64_t>& capacities) {
  constexpr int max_doublings = 16;
  __int128 sum = std::accumulate(capacities.begin(), capacities.end(), static_cast<__int128>(0));
  for (int doubling = 0; doubling < max_doublings && sum * 2 < max_flow / max_refined_rate; ++doubling) {
    for (std::int64_t& capacity : capacities) capacity *= 2;
    sum *= 2;
  }
}

}  // namespace

bool trims_to_cut(const PackingProblem& problem) {
  constexpr std::int64_t max_arcs_passed = std::int64_t{1} << 26U;  // a second or less
  const FlowNetwork& network = problem.network;
  const bool shares = std::ranges::any_of(
      network.arcs(), [&](const FlowArc& arc) { return arc.link.is_none() && !network.rank_at(arc.tail).is_none(); });
  if (!problem.scaled || !problem.all_relay() || shares) return false;
  WorkBudget budget(max_arcs_passed);
  return trim_to_balance(network, problem.scaled->capacities, problem.scaled->demands, budget).has_value() &&
         !budget.is_spent();
}

PackingProblem make_problem(const PlanningProblem& planning, Direction direction, Rank root,
                            std::span<const std::int64_t> shares, const PlanContext& context) {
  const Topology& topology = planning.topology();
  PackingProblem problem{&planning, direction, root, shares, &context, planning.flow_network(direction), {}, {}};
  CollectiveKind kind = problem.inward() ? CollectiveKind::reduce : CollectiveKind::broadcast;
  if (root.is_none()) kind = problem.inward() ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather;
  if (root.is_none() || problem.all_relay()) {
    const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
    problem.cut = planning.tightest_cut({kind, ranks, root, {shares.begin(), shares.end()}});
  } else {
    problem.network = without_relays(topology, direction, root);
    problem.cut = broadcast_cut(problem.network, root);
  }
  problem.scaled = scale_to_rate(problem.network, problem.cut, root, shares);
  return problem;
}

Result<ScaledNetwork> balanced(const PackingProblem& problem, WorkBudget& budget) {
  const FlowNetwork& network = problem.network;
  ScaledNetwork scaled = *problem.scaled;
  if (switches_are_balanced(network, scaled.capacities)) return scaled;
  if (auto trimmed = trim_to_balance(network, scaled.capacities, scaled.demands, budget)) {
    scaled.capacities = *std::move(trimmed);
    return scaled;
  }
  refine(scaled.capacities);
  const FlowNetwork shrunk = network.with_capacities(shrink_to_balance(network, scaled.capacities));
  const CutRate cut =
      problem.all_roots() ? all_gather_cut(shrunk, problem.shares) : broadcast_cut(shrunk, problem.root);
  if (cut.capacity == 0) {
    return fail(ErrorCode::unsupported, "a switch takes in and gives out so differently that no packing is known",
                "use the planner ring or tree");
  }
  return scale_to_rate(shrunk, cut, problem.root, problem.shares);
}

}  // namespace espalier::planners
