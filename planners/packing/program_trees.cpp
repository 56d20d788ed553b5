#include "planners/packing/program_trees.h"

#include <algorithm>
#include <utility>

#include "planners/program/tree_images.h"

namespace espalier {

namespace {

/// Past these the program takes longer than splitting switches does.
constexpr std::size_t most_ranks = 4096;
constexpr std::size_t most_rank_orbits = 32;
constexpr std::size_t most_resource_orbits = 320;

}  // namespace

std::optional<std::vector<Arborescence>> program_trees(const Topology& topology, Direction direction) {
  if (topology.rank_count() > most_ranks) return std::nullopt;
  const bool inward = direction == Direction::reversed;
  const OrbitGraph orbits = make_orbit_graph(topology, false, true);
  if (orbits.ranks.count() > most_rank_orbits || orbits.resources.count() > most_resource_orbits) return std::nullopt;
  const TreeOracle oracle(orbits, sharded_groups(orbits, inward));
  const auto warm_rounds = static_cast<std::uint32_t>(std::clamp<std::size_t>(orbits.resources.count(), 4, 40));
  const PatternSolution solution =
      solve_patterns(oracle.program(), oracle, {.warm_rounds = warm_rounds, .shallow = true});
  if (!solution.attained) return std::nullopt;
  const std::vector<ProgramTree> trees = tree_images(orbits, oracle.groups(), solution);
  Forest forest = whole_forest(topology, orbits.graph, trees, 1 / (solution.limit * orbits.graph.unit));
  return inward ? std::move(forest.in_trees) : std::move(forest.out_trees);
}

}  // namespace espalier
