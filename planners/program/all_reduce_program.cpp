#include "planners/program/all_reduce_program.h"

#include <utility>

#include "planners/program/tree_oracle.h"

namespace espalier {

std::optional<AllReduceProgram> solve_all_reduce(const Topology& topology) {
  constexpr std::size_t most_ranks = 64;
  constexpr std::size_t most_resources = 640;
  AllReduceProgram program{make_resource_graph(topology, true), {}, 0};
  if (topology.rank_count() > most_ranks || program.graph.capacity.size() > most_resources) return std::nullopt;
  const TreeOracle oracle(program.graph);
  program.solution = solve_patterns(oracle.program(), oracle, {});
  program.time_per_byte = 1 / (program.solution.limit * program.graph.unit);
  return program;
}

}  // namespace espalier
