#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "planners/symmetric/part_trees.h"
#include "planners/symmetric/repaired_plan.h"
#include "planners/symmetric/shift_chain.h"

namespace espalier::planners {
namespace {

/// Writes shard after shard, with the links that are left.
class RepairedWriter {
 public:
  RepairedWriter(const RepairedPlan& repaired, const Topology& topology, const Topology& rest)
      : repaired_(repaired),
        part_(repaired.plan.part),
        graph_(repaired.plan.orbits->graph),
        shifts_(*repaired.plan.orbits),
        trees_(find_part_trees(repaired.plan, shifts_, topology)),
        whole_(repaired.plan.collective, rest.name(), part_.algorithm) {
    new_link_.resize(topology.link_count());
    for (std::size_t i = 0; i < repaired.left.links.size(); ++i) new_link_[repaired.left.links[i].index()] = LinkId(i);
    edge_of_.resize(topology.link_count());
    for (std::uint32_t e = 0; e < graph_.edges.size(); ++e) edge_of_[graph_.edges[e].links.front().index()] = e;
    for (const RepairedPlan::Change& change : repaired.changes) {
      changes_[change.shard][{change.slice, change.is_inward}][change.rank] = &change;
    }
  }

  Schedule write() {
    const std::uint32_t n = repaired_.plan.collective.rank_count;
    whole_.units = part_.units * n;
    const bool has_rank = slices_have_rank(part_.collective.kind);
    for (std::uint32_t shard = 0; shard < n; ++shard) {
      for (Slice slice : part_.slices) {
        slice.offset += part_.units * shard;
        if (has_rank) slice.rank = Rank(shard);
        whole_.slices.push_back(slice);
      }
    }
    for (std::uint32_t shard = 0; shard < n; ++shard) {
      changes_.contains(shard) ? write_changed(shard) : write_image(shard);
    }
    return std::move(whole_);
  }

 private:
  using Changes = std::map<std::uint32_t, const RepairedPlan::Change*>;  // by rank

  void write_image(std::uint32_t shard) {
    const Automorphism there = shifts_.by(shard);
    for (const Transfer& transfer : part_.transfers) {
      const Route route = part_.route(transfer.route);
      std::vector<std::uint32_t> edges;
      for (const LinkId link : route.links) {
        edges.push_back(shifts_.orbits().edge_image(there, edge_of_[link.index()]));
      }
      add(shard, transfer.first_slice.value(), transfer.slice_count, transfer.action(),
          shifts_.sum(route.src.value(), shard), shifts_.sum(route.dst.value(), shard), links_of(edges));
    }
  }

  /// What is summed comes before what is spread; sums come from the leaves.
  void write_changed(std::uint32_t shard) {
    for (const bool is_inward : {true, false}) {
      for (const SliceTree& tree : trees_.trees) {
        if (tree.is_inward == is_inward) write_tree(shard, tree);
      }
    }
  }

  void write_tree(std::uint32_t shard, const SliceTree& tree) {
    const Changes& changes = changes_[shard][{tree.slice, tree.is_inward}];
    const auto parent = [&](std::uint32_t rank) {
      const auto change = changes.find(rank);
      return change == changes.end() ? tree.parent[rank] : change->second->parent;
    };
    std::vector<std::uint32_t> depth(tree.parent.size(), 0), order(tree.parent.size() - 1);
    std::iota(order.begin(), order.end(), 1);
    for (const std::uint32_t rank : order) {
      for (std::uint32_t at = rank; at != 0; at = parent(at)) ++depth[rank];
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t rank) { return depth[rank]; });
    if (tree.is_inward) std::ranges::reverse(order);
    for (const std::uint32_t rank : order) {
      std::uint32_t src = parent(rank), dst = rank;
      if (tree.is_inward) std::swap(src, dst);
      std::vector<LinkId> links;
      if (const auto change = changes.find(rank); change != changes.end()) {
        for (const LinkId link : change->second->links) links.push_back(new_link_[link.index()]);
      } else {
        const Automorphism there = shifts_.by(shifts_.sum(src, shard));
        std::vector<std::uint32_t> edges;
        for (const std::uint32_t edge : trees_.paths[tree.path[rank]].edges) {
          edges.push_back(shifts_.orbits().edge_image(there, edge));
        }
        links = links_of(edges);
      }
      add(shard, tree.slice, 1, tree.is_inward ? Action::reduce : Action::copy, shifts_.sum(src, shard),
          shifts_.sum(dst, shard), links);
    }
  }

  [[nodiscard]] std::vector<LinkId> links_of(const std::vector<std::uint32_t>& edges) const {
    std::vector<LinkId> links;
    for (const std::uint32_t edge : edges) links.push_back(new_link_[graph_.edges[edge].links.front().index()]);
    return links;
  }

  void add(std::uint32_t shard, std::uint32_t slice, std::uint32_t count, Action action, std::uint32_t src,
           std::uint32_t dst, const std::vector<LinkId>& links) {
    const RouteId route = whole_.add_route(Rank(src), Rank(dst), links);
    whole_.add_transfer(route, SliceId(part_.slices.size() * shard + slice), count, action, ChannelId(shard));
  }

  const RepairedPlan& repaired_;
  const Schedule& part_;
  const ResourceGraph& graph_;
  Shifts shifts_;
  PartTrees trees_;
  Schedule whole_;
  std::vector<LinkId> new_link_;                                                        // by link of the whole network
  std::vector<std::uint32_t> edge_of_;                                                  // by link of the whole network
  std::map<std::uint32_t, std::map<std::pair<std::uint32_t, bool>, Changes>> changes_;  // by shard, slice and direction
};

}  // namespace

Result<Schedule> written_out(const RepairedPlan& repaired, const Topology& topology, const Topology& rest) {
  const Schedule& part = repaired.plan.part;
  const std::uint32_t n = repaired.plan.collective.rank_count;
  const std::size_t transfers = repaired.tree_count * n;
  if (part.units > max_units / n || part.slices.size() > max_slices / n || transfers > max_transfers ||
      n > max_channels) {
    return fail(ErrorCode::too_large, "the plan of " + std::to_string(n) + " ranks is too large to be written out", "");
  }
  return RepairedWriter(repaired, topology, rest).write();
}

}  // namespace espalier::planners
