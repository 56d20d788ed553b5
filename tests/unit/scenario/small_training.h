#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scenario/run/run_job.h"
#include "scenario/workload/training.h"
#include "topology/topology_builder.h"

namespace espalier::scenario::test {

/// One layer of a forward pass: 24 tokens h^2 + 4 s tokens h operations, with 1 sequence of 8 tokens and h = 16:
/// 24 x 8 x 256 + 4 x 8 x 8 x 16 = 53,248. At 1 GFLOP/s a pass forward takes 53,248 ns, backward twice that.
inline constexpr std::int64_t layer_ps = 53'248'000;

inline TrainingModel small_model() {
  TrainingModel model;
  model.layers = 4;
  model.hidden = 16;
  model.heads = 4;
  model.sequence = 8;
  model.batch = 4;
  model.rate = {1'000'000'000};
  return model;
}

inline std::vector<Rank> first_ranks(std::size_t count) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < count; ++i) ranks.emplace_back(i);
  return ranks;
}

inline JobReport run_training(const TrainingModel& model, const Topology& topology, const RunSettings& settings = {}) {
  Job job;
  const auto added = add_training(job, model, first_ranks(topology.rank_count()));
  EXPECT_TRUE(added.has_value()) << added.error().message;
  const auto checked = check_job(job, topology);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  auto report = run_job(job, topology, {}, settings);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return report ? *std::move(report) : JobReport();
}

/// Links so fast that a message takes at most a few picoseconds.
inline Topology fast_star(std::size_t ranks) {
  TopologyBuilder builder;
  const Wire wire{.bandwidth = {1'000'000'000'000'000}, .latency = {0}, .link_class = ""};
  const NodeId hub = builder.forwarder(NodeKind::switch_node, "hub");
  for (std::size_t i = 0; i < ranks; ++i) builder.cable(builder.rank("r" + std::to_string(i)), hub, wire);
  return *std::move(builder).build("fast");
}

}  // namespace espalier::scenario::test
