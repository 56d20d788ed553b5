#include "planners/lp/flow_schedule.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planners/blocks/block_schedule.h"
#include "planners/graph/resource_graph.h"

namespace espalier::planners {
namespace {

/// Of a block, a path that carries less is left out.
constexpr double min_share = 0.004;

/// The columns of one source, as trees of hops.
class SourceTrees {
 public:
  SourceTrees(const ResourceGraph& graph, const FlowDemand& demand) : graph_(graph), demand_(demand) {}

  void add(const Column& column, double amount) {
    Tree& tree = trees_.emplace_back(Tree{amount, std::vector<RankPath>(graph_.rank_count())});
    for (RankPath& path : split_paths(graph_, column.edges)) tree.into[path.to] = std::move(path);
  }

  /// The paths of a block and what each carries, most first, without small ones.
  [[nodiscard]] std::vector<std::pair<std::vector<RankPath>, double>> paths_to(std::uint32_t target) const {
    std::map<std::vector<std::uint32_t>, std::pair<std::vector<RankPath>, double>> by_edges;
    double all = 0;
    for (const Tree& tree : trees_) {
      std::vector<RankPath> path;
      for (std::uint32_t rank = target; rank != demand_.source; rank = path.back().from)
        path.push_back(tree.into[rank]);
      std::reverse(path.begin(), path.end());
      std::vector<std::uint32_t> edges;
      for (const RankPath& hop : path) edges.insert(edges.end(), hop.edges.begin(), hop.edges.end());
      auto& known = by_edges.try_emplace(std::move(edges), std::move(path), 0).first->second;
      known.second += tree.amount;
      all += tree.amount;
    }
    std::vector<std::pair<std::vector<RankPath>, double>> paths;
    for (auto& [edges, path] : by_edges) paths.push_back(std::move(path));
    std::ranges::stable_sort(paths, std::greater<>(), [](const auto& path) { return path.second; });
    while (paths.size() > 1 && paths.back().second < min_share * all) paths.pop_back();
    return paths;
  }

 private:
  struct Tree {
    double amount = 0;
    std::vector<RankPath> into;  ///< By rank: the hop that enters it.
  };

  const ResourceGraph& graph_;
  const FlowDemand& demand_;
  std::vector<Tree> trees_;
};

}  // namespace

Result<Schedule> schedule_flow(const Topology& topology, const Collective& collective, const FlowProgram& program) {
  const ResourceGraph& graph = program.orbits->graph;
  std::vector<SourceTrees> sources;
  for (const FlowDemand& demand : program.demands) sources.emplace_back(graph, demand);
  for (const ColumnSolution::Part& part : program.solution.parts) {
    sources[part.column.group].add(part.column, part.amount.convert_to<double>());
  }
  BlockSchedule schedule(collective, topology, "lp", BlockSchedule::fine_units(collective));
  for (std::size_t group = 0; group < sources.size(); ++group) {
    const FlowDemand& demand = program.demands[group];
    for (std::size_t i = 0; i < demand.targets.size(); ++i) {
      const auto paths = sources[group].paths_to(demand.targets[i]);
      std::vector<double> weights;
      for (const auto& path : paths) weights.push_back(path.second);
      const auto units = divide_units(demand.amount(i) * schedule.units_per_share(), weights);
      for (std::size_t p = 0; p < paths.size(); ++p) {
        std::vector<RouteId> hops;
        for (const RankPath& hop : paths[p].first) {
          std::vector<LinkId> links;
          for (const std::uint32_t edge : hop.edges) links.push_back(graph.edges[edge].links.front());
          hops.push_back(schedule.add_hop(Rank(hop.from), Rank(hop.to), links));
        }
        if (units[p] > 0) schedule.add_piece(Rank(demand.source), Rank(demand.targets[i]), hops, units[p]);
      }
    }
  }
  return std::move(schedule).finish();
}

}  // namespace espalier::planners
