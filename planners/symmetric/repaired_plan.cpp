#include "planners/symmetric/repaired_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "planners/symmetric/changing_tree.h"
#include "planners/symmetric/part_trees.h"
#include "planners/symmetric/shift_chain.h"

namespace espalier::planners {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Ranks below a broken edge that are looked at as new tops of what hangs there.
constexpr std::size_t max_tops = 256;
/// Of a chain below a broken edge, from the first one on that has a way out.
constexpr std::size_t max_chain = 8;

/// What each link carries, and which are gone, by the edges of the orbit graph.
class Links {
 public:
  Links(const OrbitGraph& orbits, const Topology& topology, const Loads& loads, const Parts& gone)
      : units_(orbits.graph.edges.size()), seconds_per_byte_(units_.size()), is_gone_(units_.size(), false) {
    const auto& edges = orbits.graph.edges;
    std::vector<bool> link_is_gone(topology.link_count(), false);
    for (const LinkId link : gone.links) link_is_gone[link.index()] = true;
    for (const NodeId node : gone.nodes) {
      for (const LinkId link : topology.out_links(node)) link_is_gone[link.index()] = true;
      for (const LinkId link : topology.in_links(node)) link_is_gone[link.index()] = true;
    }
    for (std::uint32_t e = 0; e < edges.size(); ++e) {
      const LinkId link = edges[e].links.front();
      units_[e] = loads.link_units[link.index()];
      seconds_per_byte_[e] = 1 / static_cast<double>(topology.link(link).bandwidth().bytes_per_second);
      if (!link_is_gone[link.index()]) continue;
      is_gone_[e] = true;
      gone_.push_back(e);
    }
  }

  [[nodiscard]] bool is_gone(std::uint32_t edge) const { return is_gone_[edge]; }
  [[nodiscard]] const std::vector<std::uint32_t>& gone() const { return gone_; }
  [[nodiscard]] UnitSum units(std::uint32_t edge) const { return units_[edge]; }

  void add(std::span<const std::uint32_t> edges, std::int64_t units) {
    for (const std::uint32_t edge : edges) units_[edge] += units;
  }
  /// How full an edge is with so many units more; `never` where it is gone.
  [[nodiscard]] double cost(std::uint32_t edge, std::int64_t more) const {
    if (is_gone_[edge]) return never;
    return static_cast<double>(units_[edge] + more) * seconds_per_byte_[edge];
  }

 private:
  std::vector<UnitSum> units_;
  std::vector<double> seconds_per_byte_;
  std::vector<bool> is_gone_;
  std::vector<std::uint32_t> gone_;
};

/// Changes trees one after the other, each with the loads that those before it left.
class Repair {
 public:
  Repair(RepairedPlan& repaired, const Topology& topology, const Parts& gone)
      : repaired_(repaired),
        topology_(topology),
        shifts_(*repaired.plan.orbits),
        parts_(find_part_trees(repaired.plan, shifts_, topology)),
        links_(*repaired.plan.orbits, topology, repaired.loads, gone) {}

  Result<void> run() {
    add_detours(parts_, shifts_, topology_);
    repaired_.tree_count = parts_.trees.size() * shifts_.count();
    const std::vector<Broken> broken = find_broken();
    std::array<double, 2> added{};
    for (std::size_t first = 0; first < broken.size();) {
      std::size_t end = first;
      while (end < broken.size() && broken[end].shard == broken[first].shard && broken[end].tree == broken[first].tree)
        ++end;
      const SliceTree& tree = parts_.trees[broken[first].tree];
      ChangingTree changing(parts_, tree, index(tree), shifts_, broken[first].shard);
      const std::int64_t units = repaired_.plan.part.slices[tree.slice].length;
      for (std::size_t i = first; i < end; ++i) {
        if (!reattach(changing, tree, broken[i].rank, units)) {
          return fail(ErrorCode::unsupported,
                      "what hangs on " + topology_.rank_name(Rank(shifts_.sum(broken[i].rank, broken[i].shard))) +
                          " has no other path that the plan uses",
                      "plan a smaller part of the machine");
        }
      }
      double& most = added[tree.is_inward ? 1 : 0];
      most = std::max(most, check(changing, tree, std::span(broken).subspan(first, end - first)));
      keep(changing, tree, broken[first].shard);
      first = end;
    }
    repaired_.added_latency = added[0] + added[1];
    keep_loads();
    return {};
  }

 private:
  struct Broken {
    std::uint32_t shard = 0;
    std::uint32_t tree = 0;
    std::uint32_t rank = 0;
    auto operator<=>(const Broken&) const = default;
  };

  /// Every rank in every image of a tree whose edge goes over what is gone.
  std::vector<Broken> find_broken() const {
    const OrbitGraph& orbits = shifts_.orbits();
    const auto orbit_of = [&](std::uint32_t e) { return orbits.resources.of[orbits.graph.edges[e].resources.front()]; };
    // By orbit of an edge that is gone: an edge of it, and by edge the shifts that take that one there.
    std::map<std::uint32_t, std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>> shifts_to;
    for (const std::uint32_t gone : links_.gone()) {
      auto& to = shifts_to[orbit_of(gone)];
      if (!to.empty()) continue;
      for (std::uint32_t s = 0; s < shifts_.count(); ++s) to[orbits.edge_image(shifts_.by(s), gone)].push_back(s);
    }
    std::vector<Broken> broken;
    for (std::uint32_t t = 0; t < parts_.trees.size(); ++t) {
      const SliceTree& tree = parts_.trees[t];
      for (std::uint32_t rank = 1; rank < shifts_.count(); ++rank) {
        const Automorphism there = shifts_.by(tree.is_inward ? rank : tree.parent[rank]);
        for (const std::uint32_t edge : parts_.paths[tree.path[rank]].edges) {
          const auto to = shifts_to.find(orbit_of(edge));
          if (to == shifts_to.end()) continue;
          const std::uint32_t back = shifts_.minus(to->second.at(orbits.edge_image(there, edge)).front());
          for (const std::uint32_t gone : links_.gone()) {
            if (orbit_of(gone) != to->first) continue;
            for (const std::uint32_t shift : to->second.at(gone)) broken.push_back({shifts_.sum(shift, back), t, rank});
          }
        }
      }
    }
    std::ranges::sort(broken);
    broken.erase(std::unique(broken.begin(), broken.end()), broken.end());
    return broken;
  }

  /// Ranks hung anew, so that one below a broken edge is the top of what hangs there.
  struct Way {
    double cost = never;
    std::vector<Hanging> hangings;
  };

  /// How full the fullest edge of a path is with so many units more, at least `least`; of no meaning from `most` on.
  [[nodiscard]] double cost_of(const ChangingTree& changing, const Hanging& hanging, std::int64_t more, double least,
                               double most) const {
    double cost = least;
    changing.for_edges(hanging, [&](std::uint32_t edge) {
      cost = std::max(cost, links_.cost(edge, more));
      return cost < most;
    });
    return cost;
  }

  /// The best path on which a rank hangs on one that is not below `top`.
  void look_outside(const ChangingTree& changing, std::uint32_t rank, std::uint32_t top, std::int64_t units,
                    const Way& below, Way& best) const {
    for (std::uint32_t p = 0; p < parts_.paths.size(); ++p) {
      const Hanging hanging{rank, changing.other_end(rank, p), p};
      const double cost = cost_of(changing, hanging, units, below.cost, best.cost);
      if (cost >= best.cost || changing.is_below(hanging.parent, top)) continue;
      best = {cost, below.hangings};
      best.hangings.push_back(hanging);
    }
  }

  /// The best path for an edge that is turned round.
  [[nodiscard]] std::optional<std::pair<double, Hanging>> turned(const ChangingTree& changing, std::uint32_t rank,
                                                                 std::uint32_t parent, std::int64_t units) const {
    std::pair<double, Hanging> best{never, {}};
    for (const std::uint32_t p : changing.paths_between(rank, parent)) {
      const Hanging hanging{rank, parent, p};
      const double cost = cost_of(changing, hanging, units, 0, best.first);
      if (cost < best.first) best = {cost, hanging};
    }
    if (best.first == never) return std::nullopt;
    return best;
  }

  /// The best way to hang a rank, or one below it with the edges between them turned round, on one that is not below.
  Way find_way(const ChangingTree& changing, const SliceTree& tree, std::uint32_t rank, std::int64_t units) {
    Way best;
    // Level by level below the rank, to the first level that has a way out; in a chain some more, or all broken edges
    // would load the same neighbour.
    std::vector<std::pair<std::uint32_t, Way>> level = {{rank, Way{0, {}}}};
    std::size_t looked_at = 0, more_levels = 0;
    while (!level.empty()) {
      std::vector<std::pair<std::uint32_t, Way>> next;
      for (const auto& [top, below] : level) look_outside(changing, top, rank, units, below, best);
      looked_at += level.size();
      if (looked_at > max_tops) break;
      if (best.cost < never && (level.size() > 1 || ++more_levels == max_chain)) break;
      for (const auto& [top, below] : level) {
        for (const std::uint32_t child : index(tree).children(top)) {
          if (changing.parent(child) != top) continue;
          const auto edge = turned(changing, top, child, units);
          if (!edge) continue;
          Way way{std::max(below.cost, edge->first), below.hangings};
          way.hangings.push_back(edge->second);
          next.emplace_back(child, std::move(way));
        }
      }
      level = std::move(next);
    }
    return best;
  }

  void take(ChangingTree& changing, const Way& way, std::int64_t units) {
    for (const Hanging& hanging : way.hangings) links_.add(changing.edges(changing.now(hanging.rank)), -units);
    for (const Hanging& hanging : way.hangings) {
      changing.hang(hanging);
      links_.add(changing.edges(hanging), units);
    }
  }

  /// The same where all other ranks are below: the parent hands on to one of them on another path, and what hangs on
  /// that one is a place to hang on.
  bool reattach_by_parent(ChangingTree& changing, const SliceTree& tree, std::uint32_t rank, std::int64_t units) {
    const std::uint32_t parent = changing.parent(rank);
    Way best;
    for (std::uint32_t p = 0; p < parts_.paths.size(); ++p) {
      const Hanging first{changing.reached_from(parent, p), parent, p};
      const double cost = cost_of(changing, first, units, 0, best.cost);
      if (cost >= best.cost || first.rank == rank || !changing.is_below(first.rank, rank)) continue;
      ChangingTree tried = changing;
      tried.hang(first);
      const Way then = find_way(tried, tree, rank, units);
      if (std::max(cost, then.cost) >= best.cost) continue;
      best = {std::max(cost, then.cost), {first}};
      best.hangings.insert(best.hangings.end(), then.hangings.begin(), then.hangings.end());
    }
    if (best.cost == never) return false;
    take(changing, best, units);
    return true;
  }

  bool reattach(ChangingTree& changing, const SliceTree& tree, std::uint32_t rank, std::int64_t units) {
    if (changing.is_changed(rank)) return true;  // turned round for another one
    const Way way = find_way(changing, tree, rank, units);
    if (way.cost == never) return reattach_by_parent(changing, tree, rank, units);
    take(changing, way, units);
    return true;
  }

  /// That each rank hangs on the root and no changed or broken edge is over what is gone. By how much the longest chain
  /// of latencies is longer than that of the tree before.
  double check(const ChangingTree& changing, const SliceTree& tree, std::span<const Broken> broken) {
    for (const Broken& edge : broken) ESPALIER_CHECK(changing.is_changed(edge.rank), "every broken edge was changed");
    for (const auto& [place, hanging] : changing.changed()) {
      ESPALIER_CHECK(cost_of(changing, hanging, 0, 0, never) < never, "a changed path avoids what is gone");
    }
    return std::max(0.0, changing.longest_changed_chain() - index(tree).longest_chain(0, shifts_.count()));
  }

  const IndexedTree& index(const SliceTree& tree) {
    if (indices_.empty()) indices_.resize(parts_.trees.size());
    auto& index = indices_[static_cast<std::size_t>(&tree - parts_.trees.data())];
    if (!index) index.emplace(tree, parts_.paths);
    return *index;
  }

  void keep(const ChangingTree& changing, const SliceTree& tree, std::uint32_t shard) {
    ++repaired_.changed_trees;
    std::vector<Hanging> sorted;
    for (const auto& [place, hanging] : changing.changed()) sorted.push_back(hanging);
    std::ranges::sort(sorted, {}, &Hanging::rank);
    for (const Hanging& hanging : sorted) {
      RepairedPlan::Change change{tree.slice, shard, tree.is_inward, hanging.rank, hanging.parent, {}};
      for (const std::uint32_t edge : changing.edges(hanging)) {
        change.links.push_back(shifts_.orbits().graph.edges[edge].links.front());
      }
      repaired_.changes.push_back(std::move(change));
    }
  }

  void keep_loads() {
    const auto& edges = shifts_.orbits().graph.edges;
    Loads& loads = repaired_.loads;
    for (std::uint32_t e = 0; e < edges.size(); ++e) {
      ESPALIER_CHECK(!links_.is_gone(e) || links_.units(e) == 0, "nothing goes over what is gone");
      loads.link_units[edges[e].links.front().index()] = links_.units(e);
    }
  }

  RepairedPlan& repaired_;
  const Topology& topology_;
  Shifts shifts_;
  PartTrees parts_;
  Links links_;
  std::vector<std::optional<IndexedTree>> indices_;  // by tree, where they were needed
};

}  // namespace

Result<RepairedPlan> repair(SymmetricPlan plan, const Topology& topology, const Parts& gone) {
  for (const NodeId node : gone.nodes) {
    if (topology.node(node).is_rank) {
      return fail(ErrorCode::unsupported,
                  "without " + topology.node(node).id + " the ranks are not all alike, and their shards are other ones",
                  "take links, NICs and switches away, not ranks");
    }
  }
  if (std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.bandwidth.bytes_per_second != 0; })) {
    return fail(ErrorCode::unsupported, "plans of machines with backplanes are not repaired", "");
  }
  RepairedPlan repaired;
  repaired.whole = &topology;
  repaired.loads = loads_of_whole(plan, topology);
  repaired.plan = std::move(plan);
  repaired.left = what_is_left(topology, gone);
  if (auto ran = Repair(repaired, topology, gone).run(); !ran) return tl::unexpected(ran.error());
  find_fullest(repaired.loads, repaired.plan, topology);
  return repaired;
}

}  // namespace espalier::planners
