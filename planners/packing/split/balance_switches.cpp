#include "planners/packing/split/balance_switches.h"

#include <algorithm>

#include "planners/packing/split/demand_oracle.h"

namespace espalier::planners {
namespace {

/// By switch the surplus of what enters it.
class SwitchSides {
 public:
  SwitchSides(const FlowNetwork& network, std::span<const std::int64_t> capacities)
      : network_(network), surplus_(network.vertex_count(), 0) {
    for (std::uint32_t arc = 0; arc < network.arcs().size(); ++arc) {
      surplus_[network.arcs()[arc].tail] -= capacities[arc];
      surplus_[network.arcs()[arc].head] += capacities[arc];
    }
    for (const std::uint32_t vertex : network.rank_vertices()) surplus_[vertex] = always_balanced;
  }

  /// How much more capacity enters a switch than leaves it; 0 for ranks.
  [[nodiscard]] std::int64_t surplus(std::uint32_t vertex) const {
    return surplus_[vertex] == always_balanced ? 0 : surplus_[vertex];
  }
  /// The arcs on the larger side of an unbalanced switch.
  [[nodiscard]] std::span<const std::uint32_t> larger_side(std::uint32_t vertex) const {
    return surplus(vertex) > 0 ? network_.arcs_to(vertex) : network_.arcs_from(vertex);
  }
  void take_off(const FlowArc& arc, std::int64_t amount) {
    if (surplus_[arc.tail] != always_balanced) surplus_[arc.tail] += amount;
    if (surplus_[arc.head] != always_balanced) surplus_[arc.head] -= amount;
  }

 private:
  static constexpr std::int64_t always_balanced = std::numeric_limits<std::int64_t>::min();
  const FlowNetwork& network_;
  std::vector<std::int64_t> surplus_;
};

/// Takes `whole` off the arcs of a switch's larger side in proportion to their capacities.
void shrink(const FlowNetwork& network, SwitchSides& sides, std::uint32_t vertex, std::vector<std::int64_t>& capacity) {
  const std::int64_t whole = std::abs(sides.surplus(vertex));
  const auto side = sides.larger_side(vertex);
  __int128 total = 0;
  for (const std::uint32_t arc : side) total += capacity[arc];
  const auto take_off = [&](std::uint32_t arc, std::int64_t amount) {
    capacity[arc] -= amount;
    sides.take_off(network.arcs()[arc], amount);
    return amount;
  };
  std::int64_t left = whole;
  const std::vector<std::int64_t> before = capacity;
  for (const std::uint32_t arc : side) {
    left -= take_off(arc, static_cast<std::int64_t>(static_cast<__int128>(before[arc]) * whole / total));
  }
  for (const std::uint32_t arc : side) left -= take_off(arc, std::min(left, capacity[arc]));
}

}  // namespace

bool switches_are_balanced(const FlowNetwork& network, std::span<const std::int64_t> capacities) {
  const SwitchSides sides(network, capacities);
  for (std::uint32_t vertex = 0; vertex < network.vertex_count(); ++vertex) {
    if (sides.surplus(vertex) != 0) return false;
  }
  return true;
}

std::optional<std::vector<std::int64_t>> trim_to_balance(const FlowNetwork& network,
                                                         std::span<const std::int64_t> capacities,
                                                         std::span<const std::int64_t> demands, WorkBudget& budget) {
  SwitchSides sides(network, capacities);
  DemandOracle oracle(network.vertex_count(), network.rank_vertices(), demands, budget);
  for (std::uint32_t arc = 0; arc < network.arcs().size(); ++arc) {
    oracle.add_edge(network.arcs()[arc].tail, network.arcs()[arc].head, capacities[arc]);
  }
  // Balancing one switch may unbalance its neighbour; every round takes capacity off or is the last.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t vertex = 0; vertex < network.vertex_count(); ++vertex) {
      for (const std::uint32_t arc : sides.larger_side(vertex)) {
        const std::int64_t amount = std::min(std::abs(sides.surplus(vertex)), oracle.capacity(arc));
        const DemandOracle::Change change{arc, -1};
        const std::int64_t taken = oracle.apply_most(std::span(&change, 1), amount);
        sides.take_off(network.arcs()[arc], taken);
        changed = changed || taken > 0;
      }
    }
  }
  std::vector<std::int64_t> trimmed(capacities.size());
  for (std::uint32_t arc = 0; arc < trimmed.size(); ++arc) trimmed[arc] = oracle.capacity(arc);
  if (!switches_are_balanced(network, trimmed)) return std::nullopt;
  return trimmed;
}

std::vector<std::int64_t> shrink_to_balance(const FlowNetwork& network, std::span<const std::int64_t> capacities) {
  SwitchSides sides(network, capacities);
  std::vector<std::int64_t> shrunk(capacities.begin(), capacities.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t vertex = 0; vertex < network.vertex_count(); ++vertex) {
      if (sides.surplus(vertex) == 0) continue;
      shrink(network, sides, vertex, shrunk);
      changed = true;
    }
  }
  return shrunk;
}

}  // namespace espalier::planners
