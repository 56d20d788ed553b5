#include <algorithm>

#include "planners/classic/classic.h"
#include "planners/classic/partners.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

namespace {

/// The parent of place p is p without its lowest set bit; larger subtrees come first.
Result<Arborescence> make_tree(const Partners& partners, Rank root, bool inwards) {
  std::vector<Rank> order = partners.order();
  std::rotate(order.begin(), std::find(order.begin(), order.end(), root), order.end());
  Arborescence tree;
  tree.root = root;
  for (std::size_t step = std::bit_ceil(order.size()) / 2; step > 0; step /= 2) {
    for (std::size_t parent = 0; parent + step < order.size(); parent += 2 * step) {
      const Rank child = order[parent + step];
      const auto route = inwards ? partners.route(child, order[parent]) : partners.route(order[parent], child);
      if (!route) return tl::unexpected(route.error());
      tree.edges.push_back({order[parent], child, *route});
    }
  }
  return tree;
}

}  // namespace

Result<Schedule> plan_binomial(const PlanningProblem& problem, const Collective& collective) {
  const CollectiveKind kind = collective.kind;
  if (!has_root(kind) && kind != CollectiveKind::all_reduce) {
    return fail(ErrorCode::unsupported, "binomial does not plan " + std::string(to_string(kind)),
                slices_have_destination(kind) ? "use pairwise" : "use recursive, bruck, flat, ring or packing");
  }
  const Topology& topology = problem.topology();
  const Partners partners(problem, "binomial");
  const Rank root = collective.root.is_none() ? Rank(0) : collective.root;
  const bool inwards = reduces(kind) || kind == CollectiveKind::gather;
  const bool outwards = !inwards || kind == CollectiveKind::all_reduce;
  Forest forest;
  if (inwards) {
    Result<Arborescence> tree = make_tree(partners, root, true);
    if (!tree) return tl::unexpected(tree.error());
    forest.in_trees.push_back(std::move(*tree));
  }
  if (outwards) {
    Result<Arborescence> tree = make_tree(partners, root, false);
    if (!tree) return tl::unexpected(tree.error());
    forest.out_trees.push_back(std::move(*tree));
  }
  return schedule_from_trees(collective, topology, "binomial", forest);
}

}  // namespace espalier::planners
