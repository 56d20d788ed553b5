#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "tests/support/pipeline.h"
#include "topology/generate/generate.h"

// Every planner on machines as they are built, not on random graphs alone: boxes, alike and unlike, rails, tori, fat
// trees and switches that compute. A planner that no longer plans where it did, or a new one that says nothing of
// itself here, fails by name.

namespace espalier {
namespace {

template <class Options>
Topology make(Result<Topology> (*generate)(const Options&), const Options& options) {
  auto made = generate(options);
  ESPALIER_CHECK(made.has_value(), "the options are in range");
  return std::move(*made);
}

/// Boxes of different sizes behind switches of their own, which one switch joins.
Topology make_unlike_boxes() {
  std::vector<Node> nodes;
  std::vector<Link> links;
  const auto add_node = [&](std::string id, bool is_rank) {
    nodes.push_back({});
    nodes.back().id = std::move(id);
    nodes.back().kind = is_rank ? NodeKind::gpu : NodeKind::switch_node;
    nodes.back().is_rank = is_rank;
    return NodeId(nodes.size() - 1);
  };
  const auto add_cable = [&](NodeId a, NodeId b, std::int64_t gigabytes) {
    for (const auto& [tail, head] : {std::pair(a, b), std::pair(b, a)}) {
      Link link;
      link.tail = tail;
      link.head = head;
      link.nominal = {gigabytes * 1'000'000'000};
      link.latency = {1'000'000};
      links.push_back(link);
    }
  };
  const NodeId spine = add_node("spine", false);
  for (const int size : {2, 3, 4}) {
    const std::string box = "box" + std::to_string(size);
    const NodeId hub = add_node(box + ".switch", false);
    add_cable(hub, spine, 25 * size);
    for (int i = 0; i < size; ++i) add_cable(add_node(box + ".gpu" + std::to_string(i), true), hub, 100);
  }
  auto made = Topology::make("unlike boxes", std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "the boxes are well formed");
  return std::move(*made);
}

/// A star whose switch copies and adds.
Topology make_computing_switch() {
  LeafSpineOptions one_leaf;
  one_leaf.leaves = one_leaf.spines = 1;
  const Topology plain = make(generate_leaf_spine, one_leaf);
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  for (Node& node : nodes) node.multicast = node.reduction = !node.is_rank;
  auto made = Topology::make("computing", std::move(nodes), {plain.links().begin(), plain.links().end()});
  ESPALIER_CHECK(made.has_value(), "a switch may copy and add");
  return std::move(*made);
}

GridOptions grid(std::int64_t rows, std::int64_t columns) {
  GridOptions options;
  options.dims = {rows, columns};
  return options;
}

RailBoxesOptions boxes(std::int64_t count, std::int64_t rails, std::int64_t spines) {
  RailBoxesOptions options;
  options.boxes = count;
  options.gpus_per_box = 4;
  options.rails = rails;
  options.spines = spines;
  return options;
}

DragonflyOptions small_dragonfly() {
  DragonflyOptions options;
  options.routers = 2;
  options.ranks = options.global_links = 1;
  return options;
}

struct Kind {
  std::string name;
  Topology machine;
  /// Planners that plan no collective there. Of innetwork, see below; others need a route from rank to rank that passes
  /// no rank.
  std::set<std::string_view> refused;
};

std::vector<Kind> make_kinds() {
  std::vector<Kind> kinds;
  kinds.push_back({"two boxes", make(generate_rail_boxes, boxes(2, 4, 1)), {}});
  kinds.push_back({"three boxes", make(generate_rail_boxes, boxes(3, 2, 1)), {}});
  kinds.push_back({"four boxes", make(generate_rail_boxes, boxes(4, 1, 1)), {}});
  kinds.push_back({"rails alone", make(generate_rail_boxes, boxes(2, 4, 0)), {"oneshot", "bruck"}});
  kinds.push_back({"unlike boxes", make_unlike_boxes(), {}});
  kinds.push_back({"torus", make(generate_torus, grid(3, 4)), {"oneshot", "binomial", "recursive", "bruck"}});
  kinds.push_back({"mesh", make(generate_mesh, grid(2, 4)), {"oneshot", "binomial", "recursive", "bruck"}});
  kinds.push_back({"hypercube", make(generate_hypercube, HypercubeOptions{}), {"oneshot", "bruck"}});
  kinds.push_back({"fully connected", make(generate_fully_connected, FullyConnectedOptions{}), {}});
  kinds.push_back({"fat tree", make(generate_fat_tree, FatTreeOptions{}), {}});
  kinds.push_back({"leaf and spine", make(generate_leaf_spine, LeafSpineOptions{}), {}});
  kinds.push_back({"dragonfly", make(generate_dragonfly, small_dragonfly()), {}});
  kinds.push_back({"computing switch", make_computing_switch(), {}});
  return kinds;
}

/// Whether the planner plans the collective; what it plans is held against everything that must be true of it. The
/// planner is called itself: `plan` would end the program over a schedule that breaks a rule.
bool try_planner(const planners::Planner& planner, const Topology& machine, const Collective& collective,
                 const Rational& bound) {
  const auto schedule = planner.plan(machine, collective, {});
  if (!schedule) {
    EXPECT_FALSE(schedule.error().help.empty()) << schedule.error().message;
    return false;
  }
  test::expect_schedule_right(*schedule, machine, bound);
  return true;
}

/// The planners that plan at least one collective on the machine.
std::set<std::string_view> planners_of(const Topology& machine) {
  std::set<std::string_view> planned;
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto root = has_root(kind) ? std::optional(Rank(machine.rank_count() - 1)) : std::nullopt;
    const auto collective = make_collective(kind, machine.rank_count(), root);
    const auto bound = planners::compute_bound(machine, *collective);
    EXPECT_TRUE(bound) << bound.error().message;
    for (const planners::Planner& planner : planners::all_planners()) {
      SCOPED_TRACE(std::string(to_string(kind)) + " by " + std::string(planner.name));
      if (bound && try_planner(planner, machine, *collective, bound->time_per_byte)) planned.insert(planner.name);
    }
  }
  return planned;
}

TEST(KindsOfMachines, EveryPlannerPlansOnEachButWhereItSaysWhyNot) {
  for (const Kind& kind : make_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto planned = planners_of(kind.machine);
    for (const planners::Planner& planner : planners::all_planners()) {
      const bool computes = kind.name == "computing switch";
      const bool is_refused =
          kind.refused.contains(planner.name) || planner.needs_matrix || (planner.name == "innetwork" && !computes);
      EXPECT_EQ(planned.contains(planner.name), !is_refused) << planner.name;
    }
  }
}

}  // namespace
}  // namespace espalier
