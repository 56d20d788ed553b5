#include "planners/lp/trees/tree_images.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace espalier::planners {

namespace {

/// The same paths in an order that depends on nothing but them, so that like trees are equal.
void sort_paths(const ResourceGraph& graph, std::vector<std::uint32_t>& edges) {
  std::vector<RankPath> paths = split_paths(graph, edges);
  std::ranges::sort(paths, {}, &RankPath::edges);
  edges.clear();
  for (const RankPath& path : paths) edges.insert(edges.end(), path.edges.begin(), path.edges.end());
}

void merge_equal(const ResourceGraph& graph, std::vector<ProgramTree>& trees) {
  for (ProgramTree& tree : trees) sort_paths(graph, tree.edges);
  const auto key = [](const ProgramTree& tree) { return std::tie(tree.root, tree.inward, tree.edges); };
  std::sort(trees.begin(), trees.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<ProgramTree> merged;
  for (ProgramTree& tree : trees) {
    if (!merged.empty() && key(merged.back()) == key(tree)) {
      merged.back().share += tree.share;
    } else {
      merged.push_back(std::move(tree));
    }
  }
  trees = std::move(merged);
}

/// Appends the images of a tree under every automorphism, its share being that of all images of one root together.
void append_images(const OrbitGraph& orbits, const ProgramTree& tree, std::vector<ProgramTree>& images) {
  const std::uint64_t count = orbits.automorphisms.count();
  const std::uint32_t orbit_size = orbits.ranks.size[orbits.ranks.of[tree.root]];
  std::vector<ProgramTree> found;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Automorphism automorphism = orbits.automorphisms.at(i);
    ProgramTree& image = found.emplace_back(tree);
    image.share = tree.share * orbit_size / count;
    image.root = orbits.rank_image(automorphism, tree.root);
    for (std::uint32_t& e : image.edges) e = orbits.edge_image(automorphism, e);
    for (std::uint32_t& target : image.targets) target = orbits.rank_image(automorphism, target);
  }
  if (count > orbit_size) merge_equal(orbits.graph, found);
  std::move(found.begin(), found.end(), std::back_inserter(images));
}

/// Picks the ranks that trees are rooted at where any may be: in their middle, unless that rank has many already and
/// another makes the tree no higher than the highest has to be.
class RootPicker {
 public:
  RootPicker(const OrbitGraph& orbits, const ColumnSolution& solution)
      : orbits_(orbits), count_(orbits.graph.rank_count(), 0) {
    for (const ColumnSolution::Part& part : solution.parts) {
      heights_.push_back(tree_heights(orbits.graph, part.column.edges));
      highest_ = std::max(highest_, std::ranges::min(heights_.back()));
    }
  }

  std::uint32_t pick(std::size_t part) {
    constexpr std::uint64_t many = 8;
    const std::vector<std::uint32_t>& heights = heights_[part];
    const auto key = [&](std::uint32_t rank) {
      const std::uint64_t count = count_[orbits_.ranks.of[rank]];
      return std::tuple(heights[rank] > highest_, count < many ? 0 : count, heights[rank]);
    };
    std::uint32_t best = 0;
    for (std::uint32_t rank = 1; rank < heights.size(); ++rank) {
      if (key(rank) < key(best)) best = rank;
    }
    const std::uint32_t orbit = orbits_.ranks.of[best];
    count_[orbit] += orbits_.automorphisms.count() / orbits_.ranks.size[orbit];
    return best;
  }

 private:
  const OrbitGraph& orbits_;
  std::vector<std::vector<std::uint32_t>> heights_;  ///< By part and rank.
  std::uint32_t highest_ = 0;                        ///< No packing of these trees is lower.
  std::vector<std::uint64_t> count_;                 ///< By orbit: images that each of its ranks is the root of.
};

}  // namespace

Forest lift(const Topology& topology, const OrbitGraph& orbits, const TreeGroups& groups,
            const ColumnSolution& solution) {
  const ResourceGraph& graph = orbits.graph;
  const Rational& carried = solution.attained ? solution.limit : solution.reached;
  std::vector<ProgramTree> trees;
  std::optional<RootPicker> roots;
  if (graph.mirrored) roots.emplace(orbits, solution);
  for (std::size_t i = 0; i < solution.parts.size(); ++i) {
    const ColumnSolution::Part& part = solution.parts[i];
    const TreeGroup& group = groups.groups[part.column.group];
    Rational share = part.amount / carried * group.share;
    if (!graph.mirrored) {
      if (groups.sharing == Sharing::free) share /= orbits.ranks.size[orbits.ranks.of[group.root]];
      append_images(orbits, {group.root, group.inward, share, part.column.edges, {}}, trees);
      continue;
    }
    const std::uint32_t root = roots->pick(i);
    share /= orbits.ranks.size[orbits.ranks.of[root]];
    std::vector<std::uint32_t> outward = directed_from(graph, part.column.edges, root);
    append_images(orbits, {root, true, share, mirror_image(graph, outward), {}}, trees);
    append_images(orbits, {root, false, share, std::move(outward), {}}, trees);
  }
  return whole_forest(topology, graph, trees, 1 / (carried * graph.unit));
}

Forest lift(const Topology& topology, const OrbitGraph& orbits, const std::vector<FlowDemand>& demands,
            const ColumnSolution& solution) {
  std::vector<ProgramTree> trees;
  for (const ColumnSolution::Part& part : solution.parts) {
    const FlowDemand& demand = demands[part.column.group];
    append_images(orbits, {demand.source, false, part.amount / solution.reached, part.column.edges, demand.targets},
                  trees);
  }
  return whole_forest(topology, orbits.graph, trees, 1 / (solution.reached * orbits.graph.unit));
}

}  // namespace espalier::planners
