#include <algorithm>

#include "planners/planner.h"
#include "tests/property/profile/machines.h"
#include "tests/support/forecast/run_nccl.h"
#include "topology/link_kind.h"
#include "topology/names/group.h"
#include "topology/reachable.h"

namespace espalier::profile {
namespace {

/// Some of a machine's GPUs, two at least, by node; the others take no part.
std::vector<NodeId> some_ranks(Random& random, const Topology& topology) {
  std::vector<NodeId> ranks;
  while (ranks.size() < 2) {
    ranks.clear();
    for (std::size_t i = 0; i < topology.rank_count(); ++i) {
      if (random.below(2) == 0) ranks.push_back(topology.node_of(Rank(i)));
    }
  }
  return ranks;
}

/// Whether ranks have no way to each other but through GPUs that take no part.
bool needs_idle(const Topology& topology) {
  std::vector<Link> links;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (!is_idle(topology, LinkId(i))) links.push_back(topology.link(LinkId(i)));
  }
  const auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, links);
  return !made || find_unreachable(*made).has_value();
}

TEST(IdleGpus, NothingPassesThroughThem) {
  std::size_t planned = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const test::Machine& machine = test::one_of(random, test::machines());
    const Topology whole = test::read_machine(machine);
    const auto topology = with_ranks(whole, some_ranks(random, whole));
    ASSERT_TRUE(topology);
    if (needs_idle(*topology)) continue;
    const planners::BundledNetwork network(*topology, planners::Paths::software);
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
      std::vector<planners::Planner> all(planners::nccl_planners().begin(), planners::nccl_planners().end());
      for (const char* name : {"ring", "tree", "packing", "flat", "pairwise", "binomial"}) {
        all.push_back(*planners::find_planner(name));
      }
      for (const planners::Planner& planner : all) {
        const auto schedule = plan_unbounded(network, test::on(*topology, kind), planner);
        if (!schedule) continue;
        ++planned;
        for (std::size_t i = 0; i < schedule->route_count(); ++i) {
          const Route route = schedule->route(RouteId(i));
          const auto is_taboo = [&](LinkId link) { return is_idle(*topology, link); };
          EXPECT_TRUE(std::ranges::none_of(route.links, is_taboo))
              << machine.name << " " << planner.name << " " << seed;
        }
      }
    }
  }
  EXPECT_GT(planned, 200U);
}

TEST(IdleGpus, NcclTakesAsLongAsWithoutThem) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 500; seed < 600; ++seed) {
    Random random(seed);
    const test::Machine& machine = test::one_of(random, test::machines());
    const Topology whole = test::read_machine(machine);
    const std::vector<NodeId> ranks = some_ranks(random, whole);
    Parts others;
    for (std::size_t i = 0; i < whole.rank_count(); ++i) {
      const NodeId node = whole.node_of(Rank(i));
      if (std::ranges::find(ranks, node) == ranks.end()) others.nodes.push_back(node);
    }
    const auto group = with_ranks(whole, ranks);
    const auto rest = without(whole, others, "the others");
    ASSERT_TRUE(group);
    const CollectiveKind kind = random.below(2) == 0 ? CollectiveKind::all_reduce : CollectiveKind::all_to_all;
    const Bytes size{std::int64_t{1} << (16 + random.below(12))};
    const auto options = test::options_of(machine);
    const auto of_group = espalier::test::run_nccl(*group, test::on(*group, kind), size, options);
    if (!rest || needs_idle(*group)) continue;  // There is no other way than through them.
    const auto of_rest = espalier::test::run_nccl(*rest, test::on(*rest, kind), size, options);
    ASSERT_EQ(of_group.has_value(), of_rest.has_value()) << machine.name << " " << seed;
    if (!of_rest) continue;
    EXPECT_EQ(of_group->by, of_rest->by) << machine.name << " " << seed;
    EXPECT_EQ(of_group->run.elapsed.count, of_rest->run.elapsed.count) << machine.name << " " << seed;
    ++compared;
  }
  EXPECT_GT(compared, 50U);
}

}  // namespace
}  // namespace espalier::profile
