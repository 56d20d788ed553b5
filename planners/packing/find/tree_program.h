#pragma once

// Tested by: tests/property/planners/tree_program_test.cpp

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "planners/bounds/bound_prices.h"
#include "planners/lp/trees/tree_oracle.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

/// The throughput of the best packing in bytes per second, of S from one root or of a shard from every rank of share 1,
/// and whether it was found; the limit of all packings where it was not, and what proves it.
struct ProgramRate {
  Rational rate;
  bool attained = false;
  std::vector<BoundPrice> prices;
};

/// The linear program over spanning trees of equal total weight from every rank, or weights in the ratio of the ranks'
/// shares, or from one root, on the orbits of the network's symmetry. Throughputs are those of a root of share 1, in
/// bytes per second / `unit()`.
class TreeProgram {
 public:
  /// Nothing where there is too little symmetry for the network's size; with one root none is used. `direction` and
  /// `shares` as for a packing; the topology and the context must outlive the program. Requires: every rank reaches
  /// every other; two ranks or more.
  static std::optional<TreeProgram> make(const PlanningProblem& problem, Direction direction, Rank root,
                                         Symmetry symmetry, std::span<const std::int64_t> shares,
                                         const PlanContext& context);

  /// How far the farthest rank is from any root: no trees are all lower.
  [[nodiscard]] std::uint32_t min_height() const { return oracle(0).min_height(); }

  /// The best packing, shallow trees preferred; with `max_height` a good one of no deeper trees (0: any). `known`:
  /// trees of the network to begin with. Requires: max_height is 0 or at least min_height().
  [[nodiscard]] ColumnSolution solve(std::uint32_t max_height = 0, std::span<const Arborescence> known = {}) const;
  /// The same packing of fewer trees, where they are more than a few. Requires: solved for any height, attained.
  [[nodiscard]] ColumnSolution with_fewer_trees(const ColumnSolution& solution) const;
  /// The best packing's throughput, whatever its trees.
  [[nodiscard]] ProgramRate optimum() const;
  /// Good packings with at most so many of a solution's columns per root, as pack_few_columns.
  [[nodiscard]] std::vector<ColumnSolution> with_few_trees(const ColumnSolution& solution,
                                                           std::span<const std::uint32_t> most) const;
  /// A good packing of `count` trees of equal weight per root, of a solution's columns. Requires: count > 0.
  [[nodiscard]] std::optional<ColumnSolution> with_equal_trees(const ColumnSolution& solution,
                                                               std::uint32_t count) const;

  /// The trees of all roots, over links. Requires: an attained solution of this program.
  [[nodiscard]] std::vector<Arborescence> lift(const ColumnSolution& solution) const;

 private:
  TreeProgram(const Topology& topology, std::shared_ptr<const OrbitGraph> orbits, TreeGroups groups, bool is_one_root,
              const PlanContext& context)
      : topology_(&topology),
        orbits_(std::move(orbits)),
        groups_(std::move(groups)),
        is_one_root_(is_one_root),
        context_(&context) {}
  [[nodiscard]] ColumnLimits limits() const;
  [[nodiscard]] std::string_view collective_name() const;
  /// Bytes of S per second that one unit of throughput is.
  [[nodiscard]] double bytes_per_unit() const;
  [[nodiscard]] TreeOracle oracle(std::uint32_t max_height) const { return {*orbits_, groups_, max_height}; }

  const Topology* topology_;
  std::shared_ptr<const OrbitGraph> orbits_;
  TreeGroups groups_;
  bool is_one_root_;
  const PlanContext* context_;
};

/// The rate of the best packing; nothing past the program's size.
std::optional<ProgramRate> program_rate(const PlanningProblem& problem, Direction direction, Rank root,
                                        std::span<const std::int64_t> shares, const PlanContext& context = {});

}  // namespace espalier::planners
