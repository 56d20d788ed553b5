#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scenario/run/run_job.h"
#include "scenario/workload/training.h"
#include "scenario/workload/training_figures.h"
#include "tests/unit/scenario/small_training.h"
#include "tests/unit/scenario/star.h"

// Context ranks, shared experts, experts shared otherwise than layers, sharding within groups.

namespace espalier::scenario {
namespace {

using test::fast_star;
using test::first_ranks;
using test::layer_ps;
using test::small_model;

RunSettings whole_chunks() {
  RunSettings settings;
  settings.chunk = {1 << 20};
  return settings;
}

Topology slow_star(std::size_t ranks, Bandwidth bandwidth) {
  TopologyBuilder builder;
  const Wire wire{.bandwidth = bandwidth, .latency = {1'000}, .link_class = ""};
  const NodeId hub = builder.forwarder(NodeKind::switch_node, "hub");
  for (std::size_t i = 0; i < ranks; ++i) builder.cable(builder.rank("r" + std::to_string(i)), hub, wire);
  return *std::move(builder).build("slow");
}

/// What one call takes alone, by that planner.
std::int64_t alone(const Topology& topology, CollectiveKind kind, Bytes size, const std::string& planner) {
  Job job;
  const GroupId group = job.add_group(first_ranks(topology.rank_count()));
  const CallId call =
      job.add_call({.size = size, .group = group, .planner = job.add_label(planner), .kind = kind, .element_size = 2});
  for (const Rank rank : first_ranks(topology.rank_count())) {
    job.add_task({.rank = rank, .call = call, .kind = TaskKind::call}, {});
  }
  const auto report = run_job(job, topology, {}, whole_chunks());
  EXPECT_TRUE(report);
  return report ? report->elapsed.count : 0;
}

TrainingModel context_model(compute::ContextExchange exchange, std::int64_t sequence) {
  TrainingModel model = small_model();
  model.layers = 2;
  model.sequence = sequence;
  model.batch = 2;
  model.context = 4;
  model.context_exchange = exchange;
  return model;
}

TEST(TrainingParallelism, ContextRanksShareASequence) {
  for (const auto exchange :
       {compute::ContextExchange::ring, compute::ContextExchange::all_gather, compute::ContextExchange::all_to_all}) {
    const JobReport report = test::run_training(context_model(exchange, 8), fast_star(4));
    EXPECT_NEAR(static_cast<double>(report.elapsed.count) / (2 * 2 * 3 * layer_ps / 4), 1, 1e-4);
  }
}

/// Exchanges take what they take alone: in a ring beside attention, else before and behind it.
TEST(TrainingParallelism, ExchangesOfContextRanksAreHiddenAsPublished) {
  const double core = 4.0 * 64 * 64 * 16 / 1e9 * 1e12 / 4;  // 4 s^2 h operations forward, a quarter of them
  // 64 tokens of 2 x 16 numbers of two bytes.
  const Bytes keys{std::int64_t{64} * 32 * 2};
  for (const std::int64_t bandwidth : {1'000'000'000, 20'000'000, 1'000'000}) {
    const Topology topology = slow_star(4, {bandwidth});
    const auto computing = static_cast<double>(
        test::run_training(context_model(compute::ContextExchange::ring, 64), fast_star(4)).elapsed.count);
    const std::string planner = "ring";
    const auto added = [&](compute::ContextExchange exchange) {
      TrainingModel model = context_model(exchange, 64);
      model.context_planner = model.data_planner = planner;
      Job job;
      EXPECT_TRUE(add_training(job, model, first_ranks(4)));
      const auto report = run_job(job, topology, {}, whole_chunks());
      EXPECT_TRUE(report);
      std::int64_t last = 0;  // Without the gradients behind all layers.
      for (const Call& call : job.calls()) last += job.label(call.label) == "gradients" ? 1 : 0;
      EXPECT_EQ(last, 1);
      return static_cast<double>(report->elapsed.count) - computing;
    };
    const auto gather = static_cast<double>(alone(topology, CollectiveKind::all_gather, keys, planner));
    const auto scatter = static_cast<double>(alone(topology, CollectiveKind::reduce_scatter, keys, planner));
    const Bytes gradients{2 * 12 * 16 * 16 * 2};  // of two layers
    const auto behind = static_cast<double>(alone(topology, CollectiveKind::all_reduce, gradients, "ring"));
    const double ring_forward = std::max(core * 0.75, gather) + core / 4 - core;
    const double ring_back = std::max(2 * core, std::max(gather, core / 2) + scatter) - 2 * core;
    const double micro_batches = 2, layers = 2;
    EXPECT_NEAR(added(compute::ContextExchange::ring), micro_batches * layers * (ring_forward + ring_back) + behind,
                0.01 * computing);
    EXPECT_NEAR(added(compute::ContextExchange::all_gather), micro_batches * layers * (2 * gather + scatter) + behind,
                0.01 * computing);
  }
}

std::map<std::string, std::vector<std::pair<std::int64_t, std::size_t>>> calls_of(const TrainingModel& model,
                                                                                  std::size_t ranks) {
  Job job;
  const auto added = add_training(job, model, first_ranks(ranks));
  EXPECT_TRUE(added) << added.error().message;
  std::map<std::string, std::vector<std::pair<std::int64_t, std::size_t>>> calls;
  for (const Call& call : job.calls()) {
    calls[std::string(job.label(call.label)) + " " + std::string(to_string(call.kind))].emplace_back(
        call.size.count, job.ranks(call.group).size());
  }
  return calls;
}

TEST(TrainingParallelism, AShardGroupScattersWithinAndAddsAcross) {
  TrainingModel model = small_model();
  model.layers = 1;
  model.batch = 8;
  model.data = 8;
  model.sharding = Sharding::optimizer;
  model.shard_group = 4;
  const std::int64_t bytes = 12 * 16 * 16 * 2;
  auto calls = calls_of(model, 8);
  using Calls = std::vector<std::pair<std::int64_t, std::size_t>>;
  EXPECT_EQ(calls["gradients reduce_scatter"], (Calls{{bytes, 4}, {bytes, 4}}));
  EXPECT_EQ(calls["gradients all_reduce"], Calls(4, {bytes / 4, 2}));
  EXPECT_EQ(calls["parameters all_gather"], (Calls{{bytes, 4}, {bytes, 4}}));
  model.data = 0;
  EXPECT_EQ(memory_of_place(*check_training(model, 8), 0).optimizer.count, 12 * bytes / 2 / 4);

  // Keys are there before each use within a group alone; what is added across waits for what was scattered.
  model.sharding = Sharding::full;
  calls = calls_of(model, 8);
  EXPECT_EQ(calls["parameters all_gather"], Calls(4, {bytes, 4}));  // two groups, forward and backward
  const JobReport report = test::run_training(model, test::star(8));
  EXPECT_GT(report.elapsed.count, 3 * layer_ps);
}

TEST(TrainingParallelism, ExpertsMayBeSharedOtherwiseThanLayers) {
  TrainingModel model = small_model();
  model.layers = 2;
  model.tensor = 2;
  model.sequence_parallel = true;
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert = 4;
  using Calls = std::vector<std::pair<std::int64_t, std::size_t>>;
  auto calls = calls_of(model, 8);
  EXPECT_EQ(calls["experts all_to_all"].size(), 2U * 4 * 2);  // two groups, two layers, each way there and back
  EXPECT_EQ(calls["tensor all_gather"].size(), 4U * 2 * 4);   // around attention and experts, both ways
  EXPECT_EQ(calls["expert gradients all_reduce"], Calls());

  model.expert_tensor = 1;
  model.expert = 8;
  calls = calls_of(model, 8);
  ASSERT_EQ(calls["experts all_to_all"].size(), 1U * 4 * 2);
  EXPECT_EQ(calls["experts all_to_all"][0], std::pair(std::int64_t{8 / 2 * 16 * 2 * 2}, std::size_t{8}));
  EXPECT_EQ(calls["tensor all_gather"].size(), 4U * 2 * 2);  // around attention alone

  model.shared_experts = 1;  // Cut by tensor ranks, as all but experts.
  EXPECT_EQ(calls_of(model, 8)["tensor all_gather"].size(), 4U * 2 * 4);

  model.shared_experts = 0;
  model.tensor = 4;
  model.expert_tensor = 2;
  model.expert = 2;
  calls = calls_of(model, 8);
  ASSERT_FALSE(calls["expert tensor all_gather"].empty());
  EXPECT_EQ(calls["expert tensor all_gather"][0], std::pair(std::int64_t{8 / 4 * 16 * 2 * 2 * 2}, std::size_t{2}));
  EXPECT_EQ(calls["expert gradients all_reduce"].front().second, 2U);

  model.sequence_parallel = false;
  const auto refused = check_training(model, 8);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().help.find("sequence_parallel"), std::string::npos);
}

TEST(TrainingParallelism, SharedExpertsAndDenseLayersTakeTheirOperations) {
  TopologyBuilder builder;
  builder.rank("r0");
  TrainingModel model = small_model();
  model.batch = 1;
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert_width = 32;
  model.shared_experts = 1;
  model.dense_layers = 1;
  // Of a token: attention 8 h^2 and 4 s h; a dense layer 16 h^2, another three experts of 4 x 16 x 32.
  const std::int64_t attention = 8 * (8 * 256 + 4 * 8 * 16);
  const std::int64_t dense = attention + 8 * 16 * 256, sparse = attention + 8 * 3 * 4 * 16 * 32;
  EXPECT_EQ(test::run_training(model, *std::move(builder).build("one")).elapsed.count, 3 * (dense + 3 * sparse) * 1000);
  const MemoryNeed need = memory_of_place(*check_training(model, 1), 0);
  EXPECT_EQ(need.parameters.count, 2 * (4 * 4 * 256 + 8 * 256 + 3 * 9 * 2 * 16 * 32));
}

TEST(TrainingParallelism, FurtherPartsAreTriedWhereTheyAreAskedFor) {
  TrainingModel model = small_model();
  model.data = 8;
  for (const Parallelism& one : list_parallelisms(model, 8)) EXPECT_EQ(one.context, 1);
  std::set<std::int64_t> contexts;
  for (const Parallelism& one : list_parallelisms(model, 8, {.context = {1, 2, 4}})) {
    EXPECT_EQ(one.tensor * one.pipeline * one.data * one.context, 8);
    contexts.insert(one.context);
    EXPECT_EQ(parallelism_of(spread(model, one)), one);
  }
  EXPECT_EQ(contexts, (std::set<std::int64_t>{1, 2, 4}));
}

}  // namespace
}  // namespace espalier::scenario
