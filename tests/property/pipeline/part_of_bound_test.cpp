#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "sim/simulate.h"
#include "tests/support/sanitized.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"

// No prediction reaches more than its bound, however few elements there are: latencies, which hide it, are left out.

namespace espalier {
namespace {

constexpr int bounded_graph_count = test::random_cases(120);

Topology without_latency(const Topology& topology) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (Link& link : links) link.latency = {};
  auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "latencies may be 0");
  return std::move(*made);
}

/// Half of those with shards have unequal ones, some of them none.
Collective collective_of_any_shares(CollectiveKind kind, std::size_t ranks, Random& random) {
  std::vector<std::int64_t> shares;
  if (has_shards(kind) && random.below(2) == 0) {
    shares.resize(ranks);
    for (std::int64_t& share : shares) share = random.between(0, 4);
    shares[random.below(ranks)] = random.between(1, 9);
  }
  const auto root = has_root(kind) ? std::optional(Rank(random.below(ranks))) : std::nullopt;
  auto made = make_collective(kind, ranks, root, std::move(shares));
  ESPALIER_CHECK(made.has_value(), "the collective is well formed");
  return std::move(*made);
}

void expect_no_more(const Schedule& schedule, const Topology& topology, const Rational& bound, Random& random) {
  const auto simulator = sim::Simulator::make(schedule, topology);
  ASSERT_TRUE(simulator) << simulator.error().message;
  const auto ranks = static_cast<std::int64_t>(topology.rank_count());
  for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{2}, ranks - 1, ranks, ranks + 1,
                                      random.between(1, 3 * ranks), random.between(1, 5000), std::int64_t{1} << 20}) {
    for (const sim::ModelKind model : {sim::ModelKind::link, sim::ModelKind::fair}) {
      sim::Options options;
      options.element_size = std::int64_t{1} << random.below(4);
      options.size = {elements * options.element_size};
      options.chunk = {options.element_size * random.between(1, elements)};
      if (options.size.count / options.chunk.count > 64) options.chunk = {options.size.count / 64 + 8};
      options.model = model;
      const auto report = simulator->run(options);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_LE(report->of_bound(bound, schedule.collective), 1.0)
          << elements << " elements of " << options.element_size << " bytes, " << to_string(model);
    }
  }
}

void try_machine(const Topology& topology, std::uint64_t seed) {
  Random random(seed);
  constexpr std::array planners = {"ring", "tree", "flat", "pairwise", "binomial", "recursive", "packing", "lp"};
  for (const CollectiveKind kind : all_collective_kinds) {
    const Collective collective = collective_of_any_shares(kind, topology.rank_count(), random);
    const auto bound = planners::compute_bound(topology, collective);
    ASSERT_TRUE(bound) << bound.error().message;
    for (const char* const planner : planners) {
      SCOPED_TRACE(topology.name() + ", " + std::string(to_string(kind)) + " by " + planner);
      const auto schedule = planners::plan(topology, collective, *planners::find_planner(planner));
      if (schedule) expect_no_more(*schedule, topology, bound->time_per_byte, random);
    }
  }
}

TEST(PartOfBound, IsAtMostOneOnRandomGraphs) {
  Random random(44);
  for (int i = 0; i < bounded_graph_count; ++i) {
    SCOPED_TRACE(i);
    const auto topology = generate_random({.ranks = random.between(2, 7),
                                           .switches = random.between(0, 3),
                                           .extra = random.between(0, 6),
                                           .one_way = random.below(4) == 0,
                                           .balanced = random.below(4) != 0,
                                           .seed = random.next()});
    ASSERT_TRUE(topology);
    try_machine(without_latency(*topology), random.next());
  }
}

TEST(PartOfBound, IsAtMostOneOnShippedMachines) {
  for (const char* const name : {"dgx1v", "dgx1v-degraded", "dgx1v-nvlink", "dgx-h100", "dgx-h100-without-nvls",
                                 "ethernet-mixed", "lab-mixed", "mi250", "mi300x", "one-host", "rtx4090-pcie"}) {
    const TopologyReading read = read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + std::string(name) + ".yaml");
    ASSERT_TRUE(read.topology) << name;
    try_machine(without_latency(*read.topology), 44);
  }
}

}  // namespace
}  // namespace espalier
