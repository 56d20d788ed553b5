#include "planners/lp/trees/tree_columns.h"

#include <algorithm>

namespace espalier {

namespace {

std::vector<std::uint32_t> edges_by_link(const ResourceGraph& graph) {
  std::vector<std::uint32_t> edge_of;
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    for (const LinkId link : graph.edges[e].links) {
      if (link.index() >= edge_of.size()) edge_of.resize(link.index() + 1);
      edge_of[link.index()] = e;
    }
  }
  return edge_of;
}

}  // namespace

std::vector<Column> columns_of(const OrbitGraph& orbits, const TreeGroups& groups,
                               std::span<const Arborescence> trees) {
  const std::vector<std::uint32_t> edge_of = edges_by_link(orbits.graph);
  std::vector<Column> columns;
  for (const Arborescence& tree : trees) {
    const auto group = std::find_if(groups.groups.begin(), groups.groups.end(),
                                    [&](const TreeGroup& each) { return Rank(each.root) == tree.root; });
    if (group == groups.groups.end()) continue;
    Column column;
    column.group = static_cast<std::uint32_t>(group - groups.groups.begin());
    std::vector<std::int64_t> uses(orbits.graph.edges.size(), 0);
    std::vector<std::uint32_t> depth(orbits.graph.rank_count(), 0);
    for (const TreeEdge& edge : tree.edges) {
      depth[edge.child.index()] = depth[edge.parent.index()] + 1;
      for (const LinkId link : edge.links) {
        column.edges.push_back(edge_of[link.index()]);
        ++uses[column.edges.back()];
      }
    }
    column.height = *std::max_element(depth.begin(), depth.end());
    column.loads = orbit_loads(orbits, uses, group->copies);
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace espalier
