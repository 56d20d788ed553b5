#include "planners/planning_problem.h"

#include <algorithm>

namespace espalier::planners {

const FlowNetwork& PlanningProblem::flow_network(Direction direction) const {
  const std::scoped_lock lock(mutex_);
  auto& network = networks_[direction == Direction::forward ? 0 : 1];
  if (!network) network.emplace(topology_, direction);
  return *network;
}

const Topology& PlanningProblem::topology(Direction direction) const {
  if (direction == Direction::forward) return topology_;
  const std::scoped_lock lock(mutex_);
  if (!turned_) turned_ = reversed(topology_);
  return *turned_;
}

const LogicalGraph& PlanningProblem::logical_graph(Direction direction, Bytes size, std::uint32_t variants) const {
  const std::scoped_lock lock(mutex_);
  for (const KnownGraph& known : graphs_) {
    if (known.direction == direction && known.size == size && known.variants == variants) return known.graph;
  }
  return graphs_.emplace_back(KnownGraph{direction, size, variants, {topology(direction), size, variants}}).graph;
}

const CutRate& PlanningProblem::tightest_cut(const Collective& collective) const {
  const std::scoped_lock lock(mutex_);
  for (const KnownCut& known : cuts_) {
    if (known.collective == collective) return known.rate;
  }
  const FlowNetwork& network = flow_network(cut_direction(collective.kind));
  const auto find = [&] {
    if (!has_root(collective.kind)) return all_gather_cut(network, collective.shares);
    if (!has_shards(collective.kind)) return broadcast_cut(network, collective.root);
    return gather_cut(network, collective.root, collective.shares);
  };
  return cuts_.emplace_back(KnownCut{collective, find()}).rate;
}

const Result<AllReduceFloors>& PlanningProblem::floors() const {
  const std::scoped_lock lock(mutex_);
  if (!floors_) floors_ = all_reduce_floors(*this);
  return *floors_;
}

std::shared_ptr<const OrbitGraph> PlanningProblem::orbit_graph(bool fold, Symmetry symmetry,
                                                               std::span<const std::int64_t> marks) const {
  const std::scoped_lock lock(mutex_);
  auto known = std::ranges::find_if(symmetries_, [&](const KnownSymmetry& each) {
    return each.kind == symmetry && std::ranges::equal(each.marks, marks);
  });
  ResourceGraph graph = make_resource_graph(topology_, fold);
  if (known == symmetries_.end()) {
    symmetries_.push_back(
        {symmetry, {marks.begin(), marks.end()}, find_rank_symmetry(topology_, graph, symmetry, marks), {}});
    known = symmetries_.end() - 1;
  }
  auto& orbits = known->graphs[fold ? 1 : 0];
  if (orbits == nullptr) orbits = std::make_shared<const OrbitGraph>(make_orbit_graph(std::move(graph), known->found));
  return orbits;
}

std::vector<std::vector<Rank>> PlanningProblem::automorphic_ranks() const {
  std::vector<std::vector<Rank>> maps;
  for (const Symmetry symmetry : {Symmetry::free, Symmetry::any}) {
    const auto orbits = orbit_graph(symmetry == Symmetry::any, symmetry);
    for (const Permutation& generator : orbits->group.generators()) {
      std::vector<Rank> ranks;
      for (const std::uint32_t node : orbits->graph.rank_nodes) {
        ranks.emplace_back(orbits->graph.node_ranks[generator[node]]);
      }
      maps.push_back(std::move(ranks));
    }
  }
  return maps;
}

}  // namespace espalier::planners
