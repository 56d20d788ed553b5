#include "planners/packing/find/shallow_root_trees.h"

#include <cstdint>
#include <utility>

#include "planners/packing/find/shallow_tree_search.h"
#include "planners/packing/find/shallow_trees.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/reduce/parallel_switches.h"

namespace espalier::planners {

namespace {

constexpr std::size_t most_grown_ranks = 512;
constexpr std::int64_t most_grown_capacity = std::int64_t{1} << 56U;

/// The problem's network, every link as wide as all its parallel ones, for which the first one stands; nothing where
/// numbers are too large. No cut gets wider or narrower by that: like planes lie on the same side of a smallest one.
std::optional<RootNetwork> root_network(const PackingProblem& problem, const ParallelSwitches* parallel) {
  const FlowNetwork& network = problem.network;
  std::vector<std::int64_t> capacities, counts;
  __int128 sum = 0;
  for (const FlowArc& arc : network.arcs()) {
    const std::int64_t planes = parallel == nullptr ? 1 : static_cast<std::int64_t>(parallel->planes(arc.link));
    const bool stands = parallel == nullptr || parallel->in_plane(arc.link, 0) == arc.link;
    const __int128 room = stands ? static_cast<__int128>(arc.capacity) * planes : 0;
    sum += room;
    if (sum >= most_grown_capacity) return std::nullopt;
    const bool enters_root = arc.head == network.vertex_of(problem.root);
    capacities.push_back(enters_root ? 0 : static_cast<std::int64_t>(room));
    if (parallel != nullptr) counts.push_back(planes);
  }
  const auto rate = static_cast<std::int64_t>(problem.cut.capacity);
  return RootNetwork{network.with_capacities(capacities), problem.root, rate, std::move(counts)};
}

}  // namespace

std::optional<std::vector<Arborescence>> shallow_root_trees(const PackingProblem& problem, bool is_wide) {
  if (problem.rank_count() > most_grown_ranks || problem.has_backplanes()) return std::nullopt;
  const ParallelSwitches switches(problem.topology());
  if (is_wide && switches.empty()) return std::nullopt;
  const auto network = root_network(problem, is_wide ? &switches : nullptr);
  const auto found = network ? find_shallow_trees(*network, switches.empty() ? 1 : 2) : std::nullopt;
  if (!found) return std::nullopt;
  std::vector<Arborescence> trees;
  std::int64_t sum = 0;
  for (const ParentTree& tree : *found) {
    trees.push_back(over_links(problem.network, tree));
    sum += tree.weight;
  }
  if (!is_wide) {
    reduce_weights(trees);
    return trees;
  }
  for (Arborescence& tree : trees) tree.weight *= network->rate;
  std::vector<std::int64_t> capacities;
  for (const FlowArc& arc : problem.network.arcs()) capacities.push_back(arc.capacity * sum);
  return switches.lift(capacities, trees, network->rate);
}

}  // namespace espalier::planners
