#include "planners/program/all_reduce_program.h"

#include <utility>

namespace espalier {

std::optional<AllReduceProgram> solve_all_reduce(const Topology& topology) {
  constexpr std::size_t most_ranks = 1024;
  constexpr std::size_t most_rank_orbits = 64;
  constexpr std::size_t most_resource_orbits = 640;
  if (topology.rank_count() > most_ranks) return std::nullopt;
  AllReduceProgram program{make_orbit_graph(topology, true, Symmetry::any), {}, {}, 0};
  const bool large = program.orbits.ranks.count() > most_rank_orbits;
  if (large || program.orbits.resources.count() > most_resource_orbits) return std::nullopt;
  program.groups = all_reduce_groups(program.orbits);
  const TreeOracle oracle(program.orbits, program.groups);
  program.solution = solve_patterns(oracle.program(), oracle, {.shallow = true});
  program.time_per_byte = 1 / (program.solution.limit * program.orbits.graph.unit);
  return program;
}

}  // namespace espalier
