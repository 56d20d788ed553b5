#include "planners/packing/find/shallow_root_trees.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
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
  const auto vertices = network.rank_vertices();
  RootNetwork found{network.vertex_count(), {}, {vertices.begin(), vertices.end()}, problem.root.value(), 0, {}};
  __int128 sum = 0;
  for (const FlowArc& arc : network.arcs()) {
    const std::int64_t planes = parallel == nullptr ? 1 : static_cast<std::int64_t>(parallel->planes(arc.link));
    const bool stands = parallel == nullptr || parallel->in_plane(arc.link, 0) == arc.link;
    const __int128 room = stands ? static_cast<__int128>(arc.capacity) * planes : 0;
    sum += room;
    if (sum >= most_grown_capacity) return std::nullopt;
    const bool enters_root = arc.head == network.vertex_of(problem.root);
    found.arcs.push_back({arc.tail, arc.head, enters_root ? 0 : static_cast<std::int64_t>(room)});
    if (parallel != nullptr) found.parallel.push_back(planes);
  }
  found.rate = static_cast<std::int64_t>(problem.cut.capacity);
  return found;
}

/// Trees over links, and what counts among packings: at most 16 paths, then how deep and how many they are.
struct FoundTrees {
  std::vector<Arborescence> trees;
  std::uint32_t depth = 0;

  [[nodiscard]] bool beats(const FoundTrees& other) const {
    const auto key = [](const FoundTrees& found) {
      return std::tuple(std::max(found.trees.size(), most_shallow_trees), found.depth, found.trees.size());
    };
    return key(*this) < key(other);
  }
};

/// One of `searches` searches: every plane for itself, or, with parallel switches, trees as wide as all planes, dealt
/// out to them.
std::optional<FoundTrees> find_trees(const PackingProblem& problem, const ParallelSwitches* parallel,
                                     std::int64_t searches) {
  const auto network = root_network(problem, parallel);
  if (!network) return std::nullopt;
  const auto found = find_shallow_trees(*network, searches);
  if (!found) return std::nullopt;
  FoundTrees result{{}, found->depth};
  std::int64_t sum = 0;
  for (const ParentTree& tree : found->trees) {
    result.trees.push_back(over_links(problem.network, tree));
    sum += tree.weight;
  }
  if (parallel == nullptr) {
    reduce_weights(result.trees);
    return result;
  }
  for (Arborescence& tree : result.trees) tree.weight *= network->rate;
  std::vector<std::int64_t> capacities;
  for (const FlowArc& arc : problem.network.arcs()) capacities.push_back(arc.capacity * sum);
  auto dealt = parallel->lift(capacities, result.trees, network->rate);
  if (!dealt) return std::nullopt;
  result.trees = *std::move(dealt);
  return result;
}

}  // namespace

std::optional<std::vector<Arborescence>> shallow_root_trees(const PackingProblem& problem) {
  if (problem.rank_count() > most_grown_ranks || problem.has_backplanes()) return std::nullopt;
  const ParallelSwitches parallel(problem.topology());
  auto best = find_trees(problem, nullptr, parallel.empty() ? 1 : 2);
  if (!parallel.empty()) {
    auto wide = find_trees(problem, &parallel, 2);
    if (wide && (!best || wide->beats(*best))) best = std::move(wide);
  }
  return best ? std::optional(std::move(best->trees)) : std::nullopt;
}

}  // namespace espalier::planners
