#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scenario/run/run_job.h"
#include "scenario/workload/training.h"
#include "scenario/workload/training_compute.h"
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

/// Bytes of all calls of a label.
std::int64_t bytes_of_calls(const TrainingModel& model, std::size_t ranks, std::string_view label) {
  Job job;
  const auto added = add_training(job, model, first_ranks(ranks));
  EXPECT_TRUE(added) << added.error().message;
  std::int64_t bytes = 0;
  for (const Call& call : job.calls()) bytes += job.label(call.label) == label ? call.size.count : 0;
  return bytes;
}

/// A table of 32 x 16 numbers of two bytes. One place has it once; of two each has it, and they add its gradients up.
TEST(TrainingParallelism, TiedTablesAreOne) {
  constexpr std::int64_t table = std::int64_t{32} * 16 * 2;
  TrainingModel model = small_model();
  model.vocabulary = 32;
  model.data = 2;
  const std::int64_t apart = bytes_of_calls(model, 2, "gradients");
  model.tied = true;
  EXPECT_EQ(bytes_of_calls(model, 2, "gradients"), apart - table);
  EXPECT_EQ(bytes_of_calls(model, 2, "embedding gradients"), 0);
  model.pipeline = 2;
  EXPECT_EQ(bytes_of_calls(model, 4, "gradients"), apart);
  EXPECT_EQ(bytes_of_calls(model, 4, "embedding gradients"), 2 * table);  // Two replicas of both places.
  model.tensor = 2;
  EXPECT_EQ(bytes_of_calls(model, 8, "embedding gradients"), 2 * table);  // Each of two tensor ranks has a half.
  model.steps = 3;
  EXPECT_EQ(bytes_of_calls(model, 8, "embedding gradients"), 6 * table);
  EXPECT_GT(test::run_training(model, fast_star(8)).elapsed.count, 0);
}

/// Parameters are the same bytes, gathered beside the forward pass of a step instead of behind the update.
TEST(TrainingParallelism, ParametersAreGatheredBesideTheForwardPass) {
  TrainingModel model = small_model();
  model.data = 4;
  model.batch = 16;
  model.sharding = Sharding::optimizer;
  const std::int64_t bytes = bytes_of_calls(model, 4, "parameters");
  // 4 layers of 12 h^2 = 3,072 numbers take 6 KiB each: 3/4 of them pass each rank in 4.6 us at 1 GB/s.
  const Topology topology = slow_star(4, {1'000'000'000});
  const std::int64_t exposed = test::run_training(model, topology, whole_chunks()).elapsed.count;
  model.overlaps_parameters = true;
  EXPECT_EQ(bytes_of_calls(model, 4, "parameters"), bytes);
  const std::int64_t hidden = test::run_training(model, topology, whole_chunks()).elapsed.count;
  EXPECT_LT(hidden, exposed - 10'000'000);
  model.sharding = Sharding::none;
  Job job;
  const auto refused = add_training(job, model, first_ranks(4));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("overlap_param_gather is given")) << refused.error().message;
}

/// 0.47 of each call's bytes go beside the product, up to what one number for each rank makes.
TEST(TrainingParallelism, TensorCallsRunBesideProducts) {
  TrainingModel model = small_model();
  model.tensor = 2;
  model.sequence_parallel = true;
  const std::int64_t bytes = bytes_of_calls(model, 2, "tensor");
  const Topology topology = slow_star(2, {100'000'000});
  const std::int64_t exposed = test::run_training(model, topology, whole_chunks()).elapsed.count;
  const std::int64_t computing = test::run_training(model, fast_star(2)).elapsed.count;
  model.overlaps_tensor = true;
  EXPECT_EQ(bytes_of_calls(model, 2, "tensor"), bytes);
  const std::int64_t hidden = test::run_training(model, topology, whole_chunks()).elapsed.count;
  const double part = static_cast<double>(hidden - computing) / static_cast<double>(exposed - computing);
  EXPECT_GT(part, 0.53);  // A call of two ranks has latencies of its own for each of its parts.
  EXPECT_LT(part, 0.70);
  model.sequence_parallel = false;
  Job job;
  const auto refused = add_training(job, model, first_ranks(2));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("tp_comm_overlap is given")) << refused.error().message;
}

/// Each of two replicas of four experts, two on a rank, gathers them before it computes, both ways.
TEST(TrainingParallelism, ShardedExpertsAreGathered) {
  TrainingModel model = small_model();
  model.experts = 4;
  model.expert = 2;
  model.data = 4;
  model.sharding = Sharding::full;
  const std::int64_t h = model.hidden, of_layer = 4 * h * h * 2, of_experts = 2 * 8 * h * h * 2;
  // Four layers, a micro-batch each way; attention's among four, experts' in two groups of two.
  EXPECT_EQ(bytes_of_calls(model, 4, "parameters"), 4 * 2 * (of_layer + 2 * of_experts));
}

TEST(TrainingParallelism, KernelsSayWhatAttentionTakes) {
  TrainingModel model = small_model();
  model.gpu = *compute::find_gpu("a100-80gb");
  model.hidden = 4096;
  model.heads = 32;
  model.sequence = 2048;
  model.micro_batch = 4;
  model.data = 1;
  const auto core = [&] { return times_of(model).core[0].count; };
  const std::int64_t fused = core();
  const std::int64_t need = figures_of(model).memory.total().count;
  model.causal = false;
  EXPECT_NEAR(static_cast<double>(core()) / static_cast<double>(fused), 2, 0.7);  // All scores, not half of them.
  model.causal = true;
  model.attention = compute::AttentionKernels::unfused;
  // 4 x 32 x 2048^2 scores of two bytes, written and read by softmax alone: 2.1 GB, over 1 ms at 2 TB/s.
  EXPECT_GT(core(), fused + 1'000'000'000);
  // Scores and softmax are kept, in each of four layers.
  EXPECT_GE(figures_of(model).memory.total().count - need, std::int64_t{4} * 4 * 32 * 2048 * 2048 * 2 * 2);
  const auto without = times_of(model).attention[0].count;
  model.dropout = true;
  EXPECT_GT(times_of(model).attention[0].count, without);
}

}  // namespace
}  // namespace espalier::scenario
