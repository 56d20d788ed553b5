#include <gtest/gtest.h>

#include "base/random.h"
#include "sim/simulate.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/random/random_schedule.h"
#include "tests/support/sanitized.h"

namespace espalier {
namespace {

sim::Options random_options(Random& random, const Topology& topology) {
  sim::Options options;
  options.size = {std::int64_t{1} << random.between(10, 22)};
  options.chunk = {std::int64_t{1} << random.between(8, 18)};
  options.ahead = random.below(2) == 0 ? 0 : static_cast<std::uint32_t>(random.between(1, 6));
  options.model = random.below(4) == 0 ? sim::ModelKind::fair : sim::ModelKind::link;
  if (random.below(3) == 0) options.launch = {random.between(1, 5'000'000)};
  if (random.below(3) == 0) options.payload_ppm = static_cast<std::int32_t>(random.between(500'000, 999'999));
  if (random.below(4) == 0) options.conditions.jitter_ppm = static_cast<std::int32_t>(random.between(1, 200'000));
  if (random.below(4) == 0) {
    const LinkId slow(random.below(topology.link_count()));
    options.conditions.changes.push_back({slow, {random.between(0, 50'000'000)}, 500'000});
  }
  return options;
}

/// A run that is in time is the same with a deadline as without, and only one that is late is given up, whatever is in
/// its way.
TEST(Deadline, OnlyWhatIsLateIsGivenUp) {
  Random random(20'261'124);
  int late = 0, early = 0;
  for (int round = 0; round < test::random_cases(300); ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 12, true}));
    const auto kind = all_collective_kinds[random.below(all_collective_kinds.size())];
    if (kind == CollectiveKind::send_recv) continue;
    const auto schedule = test::random_schedule(random, kind, topology);
    if (!schedule) continue;
    sim::CopyEngines engines;
    if (random.below(4) == 0) engines.per_rank = 2;
    if (random.below(4) == 0) engines.message = {random.between(1, 1'000'000)};
    const auto simulator = sim::Simulator::make(*schedule, topology, engines);
    ASSERT_TRUE(simulator) << simulator.error().message;
    sim::Options options = random_options(random, topology);
    const auto whole = simulator->run(options);
    if (!whole) continue;
    for (const std::int64_t ppm : {0, 300'000, 700'000, 950'000, 999'000, 1'000'000, 1'001'000}) {
      const Picoseconds deadline{whole->elapsed.count / 1'000'000 * ppm +
                                 whole->elapsed.count % 1'000'000 * ppm / 1'000'000};
      const auto run = simulator->run_until(options, deadline);
      ASSERT_TRUE(run);
      if (*run) {
        EXPECT_EQ((*run)->elapsed, whole->elapsed) << "round " << round;
        EXPECT_EQ((*run)->links, whole->links) << "round " << round;
      } else {
        EXPECT_LT(deadline, whole->elapsed) << "round " << round << ", " << ppm;
        ++late;
        early += ppm == 950'000 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(late, test::random_cases(300));
  EXPECT_GT(early, test::random_cases(50));
}

/// On another network with the same nodes and links, a simulator gives what one that is made there gives.
TEST(Deadline, AnotherNetworkGivesWhatItGivesAlone) {
  Random random(15);
  for (int round = 0; round < test::random_cases(60); ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 12, true}));
    const auto schedule = test::random_schedule(random, CollectiveKind::all_reduce, topology);
    if (!schedule) continue;
    std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
    std::vector<Link> links(topology.links().begin(), topology.links().end());
    Link& link = links[random.below(links.size())];
    switch (random.below(4)) {
      case 0: link.nominal.bytes_per_second *= 2; break;
      case 1: link.latency.count /= 2; break;
      case 2: link.overhead.count += 1'000'000; break;
      default: nodes[random.below(nodes.size())].bandwidth = {1'000'000'000};
    }
    const auto changed = Topology::make(topology.name(), std::move(nodes), std::move(links));
    ASSERT_TRUE(changed);
    const auto simulator = sim::Simulator::make(*schedule, topology);
    ASSERT_TRUE(simulator);
    const auto moved = simulator->on(*changed);
    const auto made = sim::Simulator::make(*schedule, *changed);
    ASSERT_TRUE(moved && made);
    sim::Options options;
    options.size = {1 << 20};
    options.chunk = {1 << 14};
    const auto one = moved->run(options), other = made->run(options);
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->elapsed, other->elapsed) << "round " << round;
    EXPECT_EQ(one->links, other->links) << "round " << round;
  }
}

}  // namespace
}  // namespace espalier
