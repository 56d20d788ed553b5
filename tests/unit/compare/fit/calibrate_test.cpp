#include "compare/fit/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/random.h"
#include "planners/planner.h"
#include "sim/simulate.h"

namespace espalier::compare {
namespace {

struct Truth {
  std::int64_t bandwidth = 0;  ///< Bytes per second.
  std::int64_t latency = 0;    ///< Picoseconds.
  std::int64_t overhead = 0;
};

constexpr std::int64_t ns = 1000;
constexpr std::int64_t us = 1'000'000;
constexpr std::int64_t gb = 1'000'000'000;

/// Two boxes of `inside` ranks: all to all inside, a cable between ranks of one number across.
Topology two_boxes(std::size_t inside, const Truth& near, const Truth& far, std::int64_t reduce = 0) {
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < 2 * inside; ++i) {
    nodes.push_back({.id = "g" + std::to_string(i), .reduce_bandwidth = {reduce}});
  }
  std::vector<Link> links;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const bool is_near = i / inside == k / inside;
      if (i == k || (!is_near && i % inside != k % inside)) continue;
      const Truth& truth = is_near ? near : far;
      links.push_back({NodeId(i),
                       NodeId(k),
                       {.nominal = {truth.bandwidth},
                        .latency = {truth.latency},
                        .overhead = {truth.overhead},
                        .link_class = is_near ? "near" : "far"}});
    }
  }
  return Topology::make("boxes", std::move(nodes), std::move(links)).value();
}

struct Case {
  std::shared_ptr<Schedule> schedule;
  Bytes size;
  Bytes chunk;
};

/// What each planner makes on the given topology, at sizes with chunks of several lengths.
std::vector<Case> make_runs(const Topology& given, CollectiveKind kind, std::initializer_list<const char*> planners,
                            std::initializer_list<std::int64_t> sizes, std::initializer_list<std::int64_t> chunks) {
  const Collective collective = make_collective(kind, given.rank_count(), std::nullopt).value();
  std::vector<Case> runs;
  for (const char* name : planners) {
    auto schedule = std::make_shared<Schedule>(
        planners::plan_unbounded(given, collective, planners::find_planner(name).value()).value());
    for (const std::int64_t size : sizes) {
      for (const std::int64_t chunk : chunks) runs.push_back({schedule, {size}, {chunk}});
    }
  }
  return runs;
}

PredictTimes simulate(const std::vector<Case>& runs) {
  return [&runs](const Topology& topology, std::span<const std::size_t> which) -> Result<std::vector<double>> {
    std::vector<double> times;
    for (const std::size_t i : which) {
      const auto report =
          sim::simulate_unverified(*runs[i].schedule, topology, {runs[i].size, runs[i].chunk, 4, false, false});
      if (!report) return tl::unexpected(report.error());
      times.push_back(report->elapsed.seconds());
    }
    return times;
  };
}

/// The times on the true topology, each multiplied with 1 + a number from -noise to noise.
std::vector<double> measure(const std::vector<Case>& runs, const Topology& truth, double noise, std::uint64_t seed) {
  std::vector<std::size_t> all(runs.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  std::vector<double> times = simulate(runs)(truth, all).value();
  Random random(seed);
  for (double& time : times) time *= 1 + noise * static_cast<double>(random.between(-1000, 1000)) / 1000;
  return times;
}

const FittedParameter& find(const Calibration& calibration, const std::string& name) {
  for (const FittedParameter& fitted : calibration.parameters) {
    if (fitted.parameter.name() == name) return fitted;
  }
  ADD_FAILURE() << "no " << name;
  return calibration.parameters.front();
}

void expect_near(const Calibration& calibration, const std::string& name, double truth, double tolerance) {
  const FittedParameter& fitted = find(calibration, name);
  EXPECT_EQ(fitted.state, ParameterState::fitted) << name;
  // Four standard errors: what the fit itself says of its error.
  EXPECT_LT(std::abs(std::log(fitted.value / truth)), 4 * fitted.standard_error + 0.002) << name;
  EXPECT_NEAR(fitted.value / truth, 1, tolerance) << name << " is " << fitted.value << ", should be " << truth;
}

constexpr std::initializer_list<std::int64_t> many_sizes = {1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22};

/// Bandwidth and latency of two classes that are off by a factor of up to three, without noise and with some.
TEST(Calibrate, RecoversRatesAndLatencies) {
  const Topology truth = two_boxes(3, {40 * gb, 800 * ns, 0}, {9 * gb, 4 * us, 0});
  const Topology given = two_boxes(3, {80 * gb, 400 * ns, 0}, {12 * gb, 1500 * ns, 0});
  const auto runs = make_runs(given, CollectiveKind::all_gather, {"ring", "tree", "packing"}, many_sizes, {1 << 16});
  for (const auto& [noise, tolerance] : {std::pair(0.0, 0.02), std::pair(0.01, 0.1), std::pair(0.03, 0.25)}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto result = calibrate(given, measure(runs, truth, noise, seed), false, simulate(runs));
      ASSERT_TRUE(result.has_value());
      expect_near(*result, "bandwidth of near", 40e9, tolerance);
      expect_near(*result, "bandwidth of far", 9e9, tolerance);
      expect_near(*result, "latency of near", 800e-9, tolerance);
      expect_near(*result, "latency of far", 4e-6, tolerance);
      EXPECT_GT(result->errors_before.median, 0.2);
      EXPECT_LT(result->errors_after.median, noise + 0.002);
      EXPECT_EQ(result->hold_out.parts, 5U);
      EXPECT_LT(result->hold_out.errors.median, 2 * noise + 0.005);
    }
  }
}

/// Small chunks pay the overhead often and the latency once, so that the two can be told apart; also where the topology
/// has no overhead at all.
TEST(Calibrate, RecoversAnOverheadFromChunksOfSeveralLengths) {
  const Topology truth = two_boxes(1, {}, {20 * gb, 2 * us, 3 * us});
  for (const std::int64_t given_overhead : {1 * us, 0 * us}) {
    const Topology given = two_boxes(1, {}, {10 * gb, 1 * us, given_overhead});
    const auto runs =
        make_runs(given, CollectiveKind::all_gather, {"ring"}, many_sizes, {1 << 12, 1 << 14, 1 << 16, 1 << 20});
    const auto result = calibrate(given, measure(runs, truth, 0.01, 2), false, simulate(runs));
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->ambiguities.empty());
    expect_near(*result, "overhead of far", 3e-6, 0.05);
    expect_near(*result, "latency of far", 2e-6, 0.1);
    expect_near(*result, "bandwidth of far", 20e9, 0.05);
  }
}

/// Runs that reduce and runs that only copy, so that a link's rate and the reduction's can be told apart; also where
/// the topology has no limit.
TEST(Calibrate, RecoversAReductionRate) {
  const Topology truth = two_boxes(2, {20 * gb, 2 * us, 0}, {20 * gb, 2 * us, 0}, 8 * gb);
  for (const std::int64_t given_rate : {3 * gb, 0 * gb}) {
    const Topology given = two_boxes(2, {20 * gb, 1 * us, 0}, {20 * gb, 1 * us, 0}, given_rate);
    auto runs = make_runs(given, CollectiveKind::all_reduce, {"ring"}, many_sizes, {1 << 22});
    const auto copies = make_runs(given, CollectiveKind::all_gather, {"ring"}, many_sizes, {1 << 22});
    runs.insert(runs.end(), copies.begin(), copies.end());
    const auto result = calibrate(given, measure(runs, truth, 0.01, 3), true, simulate(runs));
    ASSERT_TRUE(result.has_value());
    expect_near(*result, "reduce_bandwidth of ranks", 8e9, 0.06);
    EXPECT_LT(result->errors_after.median, 0.012);
  }
}

/// A ring of four goes through both classes in turn: the data say one latency and one rate.
TEST(Calibrate, ClassesThatOnlyShowTogetherAreFittedJointly) {
  const Topology truth = two_boxes(2, {30 * gb, 2 * us, 0}, {30 * gb, 2 * us, 0});
  const Topology given = two_boxes(2, {20 * gb, 1 * us, 0}, {20 * gb, 1 * us, 0});
  const auto runs = make_runs(given, CollectiveKind::all_gather, {"ring"}, many_sizes, {1 << 22});
  const auto result = calibrate(given, measure(runs, truth, 0.01, 6), false, simulate(runs));
  ASSERT_TRUE(result.has_value());
  EXPECT_LT(result->errors_after.median, 0.012);
  bool has_joint = false;
  for (const FittedParameter& fitted : result->parameters) {
    if (fitted.state != ParameterState::joint) continue;
    has_joint = true;
    const bool is_rate = fitted.parameter.kind == ParameterKind::bandwidth;
    EXPECT_NEAR(fitted.value / (is_rate ? 30e9 : 2e-6), 1, 0.05) << fitted.parameter.name();
  }
  EXPECT_TRUE(has_joint);
}

/// One message per transfer: a latency and an overhead only add up.
TEST(Calibrate, SaysThatLatencyAndOverheadCannotBeToldApart) {
  const Topology truth = two_boxes(1, {10 * gb, 3 * us, 2 * us}, {10 * gb, 3 * us, 2 * us});
  const Topology given = two_boxes(1, {10 * gb, 1 * us, 2 * us}, {10 * gb, 1 * us, 2 * us});
  const auto runs = make_runs(given, CollectiveKind::broadcast, {"tree"}, many_sizes, {1 << 22});
  const auto result = calibrate(given, measure(runs, truth, 0.01, 4), false, simulate(runs));
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->ambiguities.size(), 1U);
  EXPECT_EQ(result->ambiguities[0].action, "overhead of far is held at 2 us");
  EXPECT_EQ(result->ambiguities[0].parameters.size(), 2U);
  EXPECT_EQ(find(*result, "overhead of far").state, ParameterState::held);
  expect_near(*result, "latency of far", 3e-6, 0.05);
  expect_near(*result, "bandwidth of far", 10e9, 0.03);
}

TEST(Calibrate, ALinkThatNoRunUsesIsHeld) {
  const Topology given = two_boxes(2, {10 * gb, 1 * us, 0}, {30 * gb, 1 * us, 0});
  std::vector<Case> runs;
  Schedule schedule({CollectiveKind::broadcast, 4, Rank(0)}, "boxes", "test");
  schedule.units = 1;
  schedule.slices = {{0, 1, {}, {}}};
  const LinkId link = given.find_link("g0>g1");
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), std::span(&link, 1)), SliceId(0), 1, Action::copy,
                        ChannelId(0));
  for (const std::int64_t size : {64, 4096, 1 << 16, 1 << 20, 1 << 22}) {
    runs.push_back({std::make_shared<Schedule>(schedule), {size}, {1 << 22}});
  }
  const Topology truth = two_boxes(2, {5 * gb, 2 * us, 0}, {30 * gb, 1 * us, 0});
  auto all_bytes = measure(runs, truth, 0, 1);
  const auto result = calibrate(given, all_bytes, false, simulate(runs));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(find(*result, "bandwidth of far").state, ParameterState::held);
  EXPECT_EQ(find(*result, "latency of far").state, ParameterState::held);
  EXPECT_EQ(find(*result, "bandwidth of far").value, 30e9);
  EXPECT_LT(result->errors_after.worst, 0.01);
  EXPECT_EQ(result->topology.link(given.find_link("g0>g2")).nominal.bytes_per_second, 30 * gb);
  EXPECT_NEAR(static_cast<double>(result->topology.link(link).nominal.bytes_per_second), 5e9, 1e8);
}

TEST(Calibrate, AnOutlierHardlyCounts) {
  const Topology truth = two_boxes(1, {10 * gb, 3 * us, 0}, {10 * gb, 3 * us, 0});
  const Topology given = two_boxes(1, {20 * gb, 1 * us, 0}, {20 * gb, 1 * us, 0});
  const auto runs = make_runs(given, CollectiveKind::broadcast, {"tree"},
                              {256, 1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 20}, {1 << 22});
  std::vector<double> times = measure(runs, truth, 0.01, 5);
  times[3] *= 3;
  const auto result = calibrate(given, times, false, simulate(runs));
  ASSERT_TRUE(result.has_value());
  EXPECT_LT(result->weights[3], 0.2);
  EXPECT_NEAR(find(*result, "bandwidth of far").value, 10e9, 0.5e9);
}

TEST(LinkParameters, ClassesAndRatesMakeGroups) {
  Topology plain = two_boxes(2, {10 * gb, 1 * us, 5 * ns}, {30 * gb, 1 * us, 0});
  EXPECT_EQ(find_parameters(plain, true).size(), 7U);
  std::vector<Link> links(plain.links().begin(), plain.links().end());
  for (Link& link : links) link.link_class.clear();
  links[0].latency = {2 * us};
  const Topology nameless = Topology::make("x", {plain.nodes().begin(), plain.nodes().end()}, std::move(links)).value();
  const auto parameters = find_parameters(nameless, false);
  ASSERT_EQ(parameters.size(), 9U);
  EXPECT_EQ(parameters[0].name(), "bandwidth of links of 10 GB/s, 2 us, overhead 5 ns");
}

TEST(LinkParameters, ValuesScaleAndRound) {
  const Topology given = two_boxes(2, {10 * gb, 1 * us, 0}, {30 * gb, 1 * us, 0}, 5 * gb);
  const auto parameters = find_parameters(given, true);
  std::vector<double> values;
  for (const Parameter& parameter : parameters) values.push_back(parameter.given);
  ASSERT_EQ(parameters[0].name(), "bandwidth of near");
  values[0] = 12'345'678'901;
  values[1] = 0;
  values[2] = 123.4567e-9;
  values[6] = 0;
  const Topology changed = with_parameters(given, parameters, values, 4).value();
  const Link& near = changed.link(changed.find_link("g0>g1"));
  EXPECT_EQ(near.nominal.bytes_per_second, 12'350'000'000);
  EXPECT_EQ(near.latency.count, 0);
  EXPECT_EQ(near.overhead.count, 123'500);
  EXPECT_EQ(changed.link(changed.find_link("g0>g2")).nominal.bytes_per_second, 30 * gb);
  EXPECT_EQ(changed.nodes()[0].reduce_bandwidth.bytes_per_second, 0);
}

}  // namespace
}  // namespace espalier::compare
