#include "planners/all_reduce_forest.h"

#include <utility>
#include <vector>

#include "planners/program/all_reduce_program.h"
#include "planners/program/program_forest.h"

namespace espalier {

namespace {

/// The out-trees and in-trees of a solution; a mirrored one gives one of each per pattern.
std::vector<ProgramTree> trees_of(const AllReduceProgram& program) {
  std::vector<ProgramTree> trees;
  for (const PatternSolution::Part& part : program.solution.parts) {
    const Rational share = part.amount / program.solution.limit;
    if (!program.graph.mirrored) {
      const std::uint32_t root = part.pattern.group / 2;
      trees.push_back({root, part.pattern.group % 2 == 1, share, part.pattern.edges, {}});
      continue;
    }
    const std::uint32_t root = tree_center(program.graph, part.pattern.edges);
    std::vector<std::uint32_t> outward = directed_from(program.graph, part.pattern.edges, root);
    trees.push_back({root, true, share, mirror_image(program.graph, outward), {}});
    trees.push_back({root, false, share, std::move(outward), {}});
  }
  return trees;
}

}  // namespace

Result<Forest> all_reduce_forest(const Topology& topology) {
  if (const auto cut_off = find_unreachable(topology)) {
    return fail(ErrorCode::infeasible,
                "rank " + topology.rank_name(cut_off->from) + " cannot reach rank " + topology.rank_name(cut_off->to),
                "add a link, or leave one of them out of the ranks");
  }
  if (topology.rank_count() == 1) return fail(ErrorCode::unsupported, "one rank: no trees are needed", "take a schedule without transfers");
  const auto program = solve_all_reduce(topology);
  if (!program) {
    return fail(ErrorCode::too_large, "the network is past the size up to which the best trees are computed",
                "use reduce-scatter followed by all-gather");
  }
  if (!program->solution.attained) {
    return fail(ErrorCode::unsupported, "the best trees were not found within the limits",
                "use reduce-scatter followed by all-gather");
  }
  return whole_forest(topology, program->graph, trees_of(*program), program->time_per_byte);
}

}  // namespace espalier
