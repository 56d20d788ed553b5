#include "planners/ring/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planners/bounds/bound.h"
#include "planners/graph/resource_graph.h"
#include "planners/lp/restricted_master.h"
#include "planners/ring/ring_hops.h"
#include "planners/ring/ring_limit.h"
#include "planners/ring/ring_program.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/ring_checks.h"

namespace espalier::planners {
namespace {

using test::expect_sound;

/// All cycles through all ranks with all their routes, as the columns of one linear program.
class AllCycles {
 public:
  explicit AllCycles(const Topology& topology)
      : graph_(make_resource_graph(topology, false)),
        program_{graph_.capacity, {0}, 1, Sharing::free},
        master_(program_),
        uses_(graph_.edges.size(), 0) {}

  /// Bytes per second of the best set.
  Rational best() {
    std::vector<std::uint32_t> order(graph_.rank_count());
    std::iota(order.begin(), order.end(), 0U);
    do {
      order_ = order;
      extend(0, graph_.rank_nodes[0]);
    } while (std::next_permutation(order.begin() + 1, order.end()));
    if (columns_ == 0) return 0;
    EXPECT_TRUE(master_.solve());
    const auto exact = master_.exact();
    EXPECT_TRUE(exact.has_value());
    return exact ? Rational(exact->throughput * graph_.unit) : Rational(0);
  }

 private:
  /// Tries all routes of the place-th hop on from `node`, then those of the hops behind it.
  void extend(std::size_t place, std::uint32_t node) {
    if (place == order_.size()) {
      master_.add({0, resource_loads(graph_, uses_), {}});
      ++columns_;
      return;
    }
    const std::uint32_t target = graph_.rank_nodes[order_[(place + 1) % order_.size()]];
    for (const std::uint32_t e : graph_.out_edges[node]) {
      const std::uint32_t head = graph_.edges[e].head;
      const bool arrives = head == target;
      if (!arrives && (graph_.node_ranks[head] != ResourceGraph::no_rank || on_route(head))) continue;
      ++uses_[e];
      if (arrives) {
        std::vector<std::uint32_t> outer;
        std::swap(outer, route_);
        extend(place + 1, head);
        std::swap(outer, route_);
      } else {
        route_.push_back(head);
        extend(place, head);
        route_.pop_back();
      }
      --uses_[e];
    }
  }

  [[nodiscard]] bool on_route(std::uint32_t node) const {
    return std::find(route_.begin(), route_.end(), node) != route_.end();
  }

  ResourceGraph graph_;
  MasterProgram program_;
  RestrictedMaster master_;
  std::vector<std::int64_t> uses_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> route_;
  std::size_t columns_ = 0;
};

/// The set is the optimum that trying everything gives.
void expect_best(const Topology& topology) {
  const RingSet set = find_rings(topology);
  expect_sound(topology, set);
  EXPECT_TRUE(set.is_best);
  const Rational best = AllCycles(topology).best();
  EXPECT_EQ(set.limit, best);
  EXPECT_EQ(set.rate(), best);
}

TEST(Rings, AreTheBestThereAreOnRandomGraphs) {
  Random random(41);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    expect_best(test::make_topology(test::random_graph(random, {6, 0, 5, round % 2 == 0})));
  }
}

TEST(Rings, AreTheBestThereAreThroughSwitches) {
  Random random(42);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Topology plain = test::make_topology(test::random_graph(random, {4, 2, 5, round % 2 == 0}));
    std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
    for (Node& node : nodes) {
      if (round % 3 == 0 && random.below(3) == 0) node.bandwidth = {random.between(1, 9) * 1'000'000'000};
    }
    expect_best(*Topology::make("random", nodes, {plain.links().begin(), plain.links().end()}));
  }
}

/// Rates without a common divisor: at most a byte per second and ring is lost.
TEST(Rings, RoundDownRatesThatAreTooFine) {
  Random random(44);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {8, 2, 400'000'000'000, true}), 1);
    const RingSet set = find_rings(topology);
    expect_sound(topology, set);
    EXPECT_TRUE(set.is_best);
    const Collective collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
    const auto schedule = plan_ring(topology, collective);
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, topology).ok());
    EXPECT_GE(set.rate() + (set.rounded ? BigInteger(set.rings.size()) : BigInteger(0)), set.limit);
  }
}

/// The schedule that rings make takes exactly as long as their rate says, and no less than the bound of the collective.
TEST(Rings, LoadWhatTheirRateSays) {
  Random random(43);
  int planned = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {16, 4, 9, true}));
    const RingSet set = find_rings(topology);
    expect_sound(topology, set);
    EXPECT_TRUE(set.is_best);
    EXPECT_LE(set.limit, ring_limit(topology));
    if (set.rings.empty()) continue;
    const Collective collective = *make_collective(CollectiveKind::all_gather, topology.rank_count(), std::nullopt);
    const auto schedule = plan_ring(topology, collective);
    ASSERT_TRUE(schedule) << schedule.error().message;
    ASSERT_TRUE(verify(*schedule, topology).ok());
    const Rational time = compute_loads(*schedule, topology).time_per_byte;
    EXPECT_LE(time, collective.busbw_factor() / set.rate());
    EXPECT_GE(time, compute_bound(topology, collective)->time_per_byte);
    ++planned;
  }
  EXPECT_GT(planned, 20);
}

/// On duplex networks both directions are planned as one: what comes of it fits, and is
/// nearly always the optimum of all rings.
TEST(Rings, OfDuplexNetworksFitAndAreMostlyTheOptimum) {
  Random random(45);
  int best = 0, found = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    test::PlainGraph graph = test::random_graph(random, {9, 2, 6, false});
    const std::vector<test::PlainGraph::Edge> edges = graph.edges;
    for (const auto& edge : edges) graph.edges.push_back({edge.head, edge.tail, edge.capacity});
    const Topology plain = test::make_topology(graph);
    std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
    for (Node& node : nodes) {
      if (round % 3 == 0 && random.below(3) == 0) node.bandwidth = {random.between(1, 9) * 1'000'000'000};
    }
    const auto topology = Topology::make("duplex", nodes, {plain.links().begin(), plain.links().end()});
    ASSERT_TRUE(topology && make_resource_graph(*topology, true).mirrored);
    RingSet set = good_fractional_rings(*topology);
    const auto optimum = best_fractional_rings(*topology);
    ASSERT_TRUE(optimum);
    if (optimum->rings.empty()) continue;
    ++found;
    set.limit = optimum->limit;
    expect_sound(*topology, set);
    if (set.rate() == optimum->limit) ++best;
  }
  EXPECT_GT(found, 20);
  EXPECT_GE(10 * best, 9 * found);
}

}  // namespace
}  // namespace espalier::planners
