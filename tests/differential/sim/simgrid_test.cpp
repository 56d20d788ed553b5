// The `fair` model against SimGrid's fluid model. SimGrid allows one engine in a process: each use has its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/simgrid/jobs.h"
#include "bench/simgrid/measure.h"
#include "sim/model.h"
#include "sim/simulate.h"

namespace espalier {
namespace {

/// Flows over random ways through random switches; every flow has a rank of its own at both ends.
struct FlowSets {
  std::vector<Node> nodes;
  std::vector<Link> links;
  struct Flow {
    std::vector<LinkId> way;
    std::int64_t start = 0;  ///< In picoseconds.
    std::int64_t bytes = 0;
  };
  std::vector<Flow> flows;  ///< Flow i goes from rank 2i to rank 2i + 1.
};

LinkId add_link(FlowSets& sets, std::size_t tail, std::size_t head, std::int64_t rate, std::int64_t latency) {
  Link link;
  link.tail = NodeId(tail);
  link.head = NodeId(head);
  link.nominal = {rate};
  link.latency = {latency};
  sets.links.push_back(link);
  return LinkId(sets.links.size() - 1);
}

/// `count` sets beside each other that share nothing, of up to `max_flows` flows each.
FlowSets make_flow_sets(std::uint64_t seed, std::size_t count, std::size_t max_flows) {
  Random random(seed);
  FlowSets sets;
  struct Shape {
    std::size_t flows, switches;
  };
  std::vector<Shape> shapes;
  std::size_t ranks = 0;
  for (std::size_t i = 0; i < count; ++i) {
    shapes.push_back({1 + random.below(max_flows), 2 + random.below(6)});
    ranks += 2 * shapes.back().flows;
  }
  sets.nodes.resize(ranks);
  const auto rate = [&] { return random.between(1, 100) * 1'000'000'000; };
  std::size_t first_rank = 0;
  for (const Shape& shape : shapes) {
    const std::size_t first_switch = sets.nodes.size();
    sets.nodes.resize(first_switch + shape.switches);
    std::vector<std::vector<LinkId>> between(shape.switches * shape.switches);
    for (std::size_t a = 0; a < shape.switches; ++a) {
      for (std::size_t b = 0; b < shape.switches; ++b) {
        if (a == b) continue;
        between[a * shape.switches + b].push_back(
            add_link(sets, first_switch + a, first_switch + b, rate(), random.between(0, 5'000'000)));
      }
    }
    for (std::size_t i = 0; i < shape.flows; ++i) {
      const std::size_t src = first_rank + 2 * i;
      std::vector<std::size_t> stops(shape.switches);
      for (std::size_t k = 0; k < stops.size(); ++k) stops[k] = k;
      const std::size_t length = 1 + random.below(stops.size());
      for (std::size_t k = 0; k < length; ++k) std::swap(stops[k], stops[k + random.below(stops.size() - k)]);
      FlowSets::Flow flow;
      flow.way.push_back(add_link(sets, src, first_switch + stops[0], rate(), 1'000'000));
      for (std::size_t k = 1; k < length; ++k) flow.way.push_back(between[stops[k - 1] * shape.switches + stops[k]][0]);
      flow.way.push_back(add_link(sets, first_switch + stops[length - 1], src + 1, rate(), 1'000'000));
      flow.start = random.between(0, 200'000'000);
      flow.bytes = random.between(1, 4'000'000);
      sets.flows.push_back(flow);
    }
    first_rank += 2 * shape.flows;
  }
  for (std::size_t i = 0; i < sets.nodes.size(); ++i) {
    sets.nodes[i].id = "n" + std::to_string(i);
    if (i < ranks) continue;
    sets.nodes[i].kind = NodeKind::switch_node;
    sets.nodes[i].is_rank = false;
  }
  return sets;
}

/// When each flow ends in the `fair` model, in seconds.
std::vector<double> run_fair(const FlowSets& sets, const Topology& topology, const Schedule& schedule) {
  const sim::Network network(topology);
  const auto compiled = sim::CompiledSchedule::make_unverified(schedule, topology, network);
  ESPALIER_CHECK(compiled.has_value(), "flow sets run on their network");
  const auto model = sim::make_model(sim::ModelKind::fair, network, {});
  const auto run = model->add(*compiled, {Bytes{schedule.units}, Bytes{schedule.units}, 1});
  ESPALIER_CHECK(run.has_value(), "flow sets have no limits");
  for (std::size_t i = 0; i < sets.flows.size(); ++i) {
    for (const std::size_t end : {2 * i, 2 * i + 1}) model->enter(*run, Rank(end), sets.flows[i].start);
  }
  std::vector<sim::RankEnd> ended;
  while (model->next_time() != sim::never) model->advance(ended);
  std::vector<double> ends(sets.flows.size());
  for (const sim::RankEnd& end : ended) ends[end.rank.index() / 2] = static_cast<double>(end.time) * 1e-12;
  return ends;
}

TEST(FairAgainstSimGrid, EveryFlowOfRandomSetsEndsAtTheSameTime) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const FlowSets sets = make_flow_sets(seed, 60, seed % 2 == 0 ? 8 : 40);
    auto topology = Topology::make("flows", sets.nodes, sets.links);
    ASSERT_TRUE(topology) << topology.error().message;
    Schedule schedule({CollectiveKind::all_reduce, static_cast<std::uint32_t>(topology->rank_count()), {}}, "flows",
                      "test");
    std::vector<peer::Message> messages;
    for (std::size_t i = 0; i < sets.flows.size(); ++i) {
      const FlowSets::Flow& flow = sets.flows[i];
      schedule.slices.push_back({schedule.units, flow.bytes, {}, {}});
      schedule.units += flow.bytes;
      const RouteId route = schedule.add_route(Rank(2 * i), Rank(2 * i + 1), flow.way);
      schedule.add_transfer(route, SliceId(i), 1, Action::copy, ChannelId(0));
      messages.push_back({static_cast<double>(flow.start) * 1e-12, static_cast<std::uint32_t>(2 * i),
                          static_cast<std::uint32_t>(2 * i + 1), static_cast<double>(flow.bytes)});
    }
    const std::vector<double> ours = run_fair(sets, *topology, schedule);
    // The child gives the largest relative difference.
    const auto largest = bench::measure([&] {
      const std::vector<double> theirs =
          peer::simulate_messages(bench::make_platform(*topology, schedule), messages, peer::Latency::sender);
      double difference = 0;
      for (std::size_t i = 0; i < ours.size(); ++i) {
        difference = std::max(difference, std::abs(ours[i] - theirs[i]) / theirs[i]);
      }
      return bench::Simulated{difference, 0};
    });
    ASSERT_TRUE(largest) << "SimGrid failed";
    EXPECT_LE(largest->simulated_s, 1e-6) << "seed " << seed << ", " << ours.size() << " flows";
    RecordProperty("largest_difference_" + std::to_string(seed), std::to_string(largest->simulated_s * 1e12) + "e-12");
  }
}

double elapsed_fair(const bench::Job& job) {
  sim::Options options;
  options.size = job.size;
  options.chunk = job.size;
  options.element_size = 1;
  options.model = sim::ModelKind::fair;
  options.conditions = job.conditions;
  const auto report = sim::simulate_unverified(job.schedule, job.topology, options);
  ESPALIER_CHECK(report.has_value(), "a job simulates");
  return report->elapsed.seconds();
}

double elapsed_peer(const bench::Job& job) {
  const auto measured = bench::measure([&] {
    const peer::Platform platform = bench::make_platform(job.topology, job.schedule);
    if (job.messages.empty()) {
      return bench::Simulated{peer::simulate_rings(platform, job.rings, peer::Latency::sender), 0};
    }
    const std::vector<double> ends = peer::simulate_messages(platform, job.messages, peer::Latency::sender);
    return bench::Simulated{std::ranges::max(ends), 0};
  });
  return measured ? measured->simulated_s : -1;
}

TEST(FairAgainstSimGrid, RingsAreAlike) {
  for (const std::size_t ranks : {2U, 3U, 8U, 32U}) {
    const bench::Job job = bench::make_ring_job({.ranks = ranks});
    EXPECT_NEAR(elapsed_peer(job) / elapsed_fair(job), 1, 1e-6) << ranks << " ranks";
  }
}

TEST(FairAgainstSimGrid, ASlowLinkIsAlike) {
  const bench::Job job = bench::make_ring_job({.ranks = 16, .slow = 10});
  EXPECT_NEAR(elapsed_peer(job) / elapsed_fair(job), 1, 1e-6);
}

TEST(FairAgainstSimGrid, JitterIsAlike) {
  const bench::Job job = bench::make_ring_job({.ranks = 32, .jitter_ppm = 20'000});
  EXPECT_NEAR(elapsed_peer(job) / elapsed_fair(job), 1, 1e-6);
}

TEST(FairAgainstSimGrid, SixteenRingsOnAnOversubscribedNetworkAreAlike) {
  const bench::Job job = bench::make_sixteen_rings_job();
  EXPECT_NEAR(elapsed_peer(job) / elapsed_fair(job), 1, 1e-6);
}

}  // namespace
}  // namespace espalier
