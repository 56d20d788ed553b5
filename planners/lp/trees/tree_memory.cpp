#include "planners/lp/trees/tree_memory.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "planners/lp/trees/program_forest.h"
#include "planners/lp/trees/tree_repair.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_kept_ranks = 512;
constexpr std::size_t max_seeds = 256;  // of a group

std::vector<std::string> names_of(const Topology& topology) {
  std::vector<std::string> names;
  for (const Node& node : topology.nodes()) names.push_back(node.id);
  return names;
}

/// Whether trees of the one kind can be trees of the other.
bool are_alike(const OrbitGraph& old_orbits, const TreeGroups& old_groups, const OrbitGraph& orbits,
               const TreeGroups& groups) {
  // On a mirrored graph a tree is one for both directions, whatever it was made for.
  if (orbits.graph.mirrored) return !old_groups.groups.front().inward;
  if (old_orbits.graph.mirrored || old_groups.sharing != groups.sharing) return false;
  return groups.sharing == Sharing::free || old_groups.groups.front().inward == groups.groups.front().inward;
}

}  // namespace

/// One network's trees on another network.
class TreeTransplant {
 public:
  TreeTransplant(const TreeMemory::Entry& from, const Topology& topology, const OrbitGraph& orbits,
                 const TreeOracle& oracle)
      : from_(from), orbits_(orbits), oracle_(oracle) {
    const ResourceGraph& graph = orbits.graph;
    std::unordered_map<std::uint64_t, std::uint32_t> edge_between;
    const auto key = [](std::uint32_t tail, std::uint32_t head) { return std::uint64_t{tail} << 32U | head; };
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      edge_between.emplace(key(graph.edges[e].tail, graph.edges[e].head), e);
    }
    for (const std::string& name : from.node_names) {
      const NodeId node = topology.find_node(name);
      nodes_.push_back(node.is_none() ? gone : node.value());
    }
    for (const ResourceGraph::Edge& edge : from.orbits->graph.edges) {
      const std::uint32_t tail = nodes_[edge.tail];
      const std::uint32_t head = nodes_[edge.head];
      const bool both = tail != gone && head != gone;
      const auto found = both ? edge_between.find(key(tail, head)) : edge_between.end();
      edges_.push_back(found == edge_between.end() ? gone : found->second);
    }
    old_nodes_.assign(graph.node_ranks.size(), gone);
    for (std::uint32_t v = 0; v < nodes_.size(); ++v) {
      if (nodes_[v] != gone) old_nodes_[nodes_[v]] = v;
    }
  }

  /// Columns of all groups; empty where one would have none.
  std::vector<Column> seeds() {
    std::vector<Column> found;
    for (std::uint32_t g = 0; g < oracle_.groups().groups.size(); ++g) {
      const std::size_t before = found.size();
      add_group(g, found);
      if (found.size() == before) return {};
    }
    return found;
  }

 private:
  void add_group(std::uint32_t number, std::vector<Column>& found) {
    const TreeGroup& group = oracle_.groups().groups[number];
    const OrbitGraph& old = *from_.orbits;
    // Any tree of a mirrored graph may be oriented from any rank.
    const bool any_root = orbits_.graph.mirrored;
    const std::uint32_t old_node = old_nodes_[orbits_.graph.rank_nodes[group.root]];
    const bool was_rank = old_node != gone && old.graph.node_ranks[old_node] != ResourceGraph::no_rank;
    if (!any_root && !was_rank) return;
    const std::uint32_t wanted = any_root ? ResourceGraph::no_rank : old.graph.node_ranks[old_node];
    std::size_t left = max_seeds;
    for (const Column& column : from_.columns) {
      const TreeGroup& old_group = from_.groups.groups[column.group];
      if (old_group.inward != group.inward) continue;
      if (!any_root && old.ranks.of[old_group.root] != old.ranks.of[wanted]) continue;
      for (std::uint64_t i = 0; i < old.automorphisms.count() && left > 0; ++i) {
        const Automorphism automorphism = old.automorphisms.at(i);
        const std::uint32_t root = old.rank_image(automorphism, old_group.root);
        if (!any_root && root != wanted) continue;
        if (auto edges = image(column, automorphism, root, group)) {
          found.push_back(oracle_.column(number, *std::move(edges)));
          --left;
        }
      }
    }
  }

  std::optional<std::vector<std::uint32_t>> image(const Column& column, const Automorphism& automorphism,
                                                  std::uint32_t old_root, const TreeGroup& group) {
    const OrbitGraph& old = *from_.orbits;
    std::vector<std::uint32_t> edges;
    for (const std::uint32_t e : column.edges) edges.push_back(old.edge_image(automorphism, e));
    std::vector<RankPath> paths = split_paths(old.graph, edges);
    for (RankPath& path : paths) {
      path.from = new_rank(old.graph.rank_nodes[path.from]);
      path.to = new_rank(old.graph.rank_nodes[path.to]);
      for (std::uint32_t& e : path.edges) e = edges_[e];
    }
    const std::uint32_t root = new_rank(old.graph.rank_nodes[old_root]);
    if (root == ResourceGraph::no_rank) return std::nullopt;
    auto repaired = repair_tree(orbits_.graph, std::move(paths), root, group.inward);
    if (!repaired || root == group.root) return repaired;
    return directed_from(orbits_.graph, *repaired, group.root);
  }

  [[nodiscard]] std::uint32_t new_rank(std::uint32_t old_node) const {
    const std::uint32_t node = nodes_[old_node];
    return node == gone ? ResourceGraph::no_rank : orbits_.graph.node_ranks[node];
  }

  const TreeMemory::Entry& from_;
  const OrbitGraph& orbits_;
  const TreeOracle& oracle_;
  std::vector<std::uint32_t> nodes_;      ///< By old node; none where it is gone.
  std::vector<std::uint32_t> old_nodes_;  ///< By node.
  std::vector<std::uint32_t> edges_;      ///< By old edge.
};

void TreeMemory::keep(const Topology& topology, std::shared_ptr<const OrbitGraph> orbits, const TreeGroups& groups,
                      const ColumnSolution& solution) {
  Entry entry{names_of(topology), std::move(orbits), groups, {}};
  std::vector<ColumnSolution::Part> parts = solution.parts;
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.amount > b.amount; });
  for (ColumnSolution::Part& part : parts) entry.columns.push_back(std::move(part.column));
  entries_.push_back(std::make_shared<const Entry>(std::move(entry)));
}

void TreeMemory::keep(const Topology& topology, bool inward, std::span<const Arborescence> trees) {
  if (topology.rank_count() > max_kept_ranks) return;
  auto orbits = std::make_shared<const OrbitGraph>(make_orbit_graph(topology, false, Symmetry::none));
  TreeGroups groups = sharded_groups(*orbits, inward);
  std::vector<Column> columns = columns_of(orbits->graph, groups, trees);
  entries_.push_back(std::make_shared<const Entry>(
      Entry{names_of(topology), std::move(orbits), std::move(groups), std::move(columns)}));
}

void TreeMemory::keep(const Topology& topology, const Schedule& schedule) {
  const Forest forest = spanning_trees(schedule);
  if (!forest.in_trees.empty()) keep(topology, true, forest.in_trees);
  if (!forest.out_trees.empty()) keep(topology, false, forest.out_trees);
}

std::vector<Column> columns_of(const ResourceGraph& graph, const TreeGroups& groups,
                               std::span<const Arborescence> trees) {
  std::vector<std::uint32_t> edge_of;  // by link
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    for (const LinkId link : graph.edges[e].links) {
      if (link.index() >= edge_of.size()) edge_of.resize(link.index() + 1);
      edge_of[link.index()] = e;
    }
  }
  std::vector<Column> columns;
  for (const Arborescence& tree : trees) {
    const auto group =
        std::ranges::find_if(groups.groups, [&](const TreeGroup& each) { return Rank(each.root) == tree.root; });
    if (group == groups.groups.end()) continue;
    Column& column = columns.emplace_back();
    column.group = static_cast<std::uint32_t>(group - groups.groups.begin());
    for (const TreeEdge& edge : tree.edges) {
      for (const LinkId link : edge.links) column.edges.push_back(edge_of[link.index()]);
    }
  }
  return columns;
}

std::vector<Column> TreeMemory::seeds(const Topology& topology, const OrbitGraph& orbits,
                                      const TreeOracle& oracle) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const Entry& kept = **entry;
    if (!are_alike(*kept.orbits, kept.groups, orbits, oracle.groups())) continue;
    std::vector<Column> found = TreeTransplant(kept, topology, orbits, oracle).seeds();
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace espalier::planners
