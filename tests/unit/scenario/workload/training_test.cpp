#include "scenario/workload/training.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scenario/run/run_job.h"
#include "scenario/workload/training_compute.h"
#include "tests/unit/scenario/small_training.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::fast_star;
using test::first_ranks;
using test::layer_ps;
using test::small_model;

JobReport run(const TrainingModel& model, const Topology& topology, const RunSettings& settings = {}) {
  return test::run_training(model, topology, settings);
}

TEST(Training, CountsOperationsAsPublished) {
  // Narayanan et al.: 24 B s h^2 (1 + s / 6h) per layer and forward pass; GPT-3's layer, one sequence.
  TrainingModel model;
  model.hidden = 12'288;
  model.heads = 96;
  model.sequence = 2'048;
  const LayerCost cost = cost_of_layer(model);
  const double published = 24.0 * 2048 * 12288 * 12288 * (1 + 2048.0 / (6 * 12288));
  EXPECT_NEAR(static_cast<double>(cost.attention_flops + cost.feed_forward_flops) / published, 1, 1e-12);
  EXPECT_EQ(cost.attention_parameters + cost.feed_forward_parameters, 12LL * 12288 * 12288);
}

TEST(Training, AloneARankComputesAllTheTime) {
  TopologyBuilder builder;
  builder.rank("r0");
  const JobReport report = run(small_model(), *std::move(builder).build("one"));
  EXPECT_EQ(report.elapsed.count, 4 * 4 * 3 * layer_ps);  // 4 layers, 4 micro-batches, forward and twice that back
  EXPECT_EQ(report.ranks[0].compute, report.elapsed.count);
}

TEST(Training, RecomputingCostsAnotherForwardPass) {
  TopologyBuilder builder;
  builder.rank("r0");
  TrainingModel model = small_model();
  model.recomputes = true;
  EXPECT_EQ(run(model, *std::move(builder).build("one")).elapsed.count, 4 * 4 * 4 * layer_ps);
}

std::size_t tensor_calls_of(TrainingModel model) {
  model.tensor = 2;
  Job job;
  EXPECT_TRUE(add_training(job, model, first_ranks(2)));
  std::size_t count = 0;
  for (const Call& call : job.calls()) count += job.label(call.label) == "tensor" ? 1U : 0U;
  return count;
}

TEST(Training, RecomputingRepeatsTheCallsOfTensorRanks) {
  TrainingModel model = small_model();
  EXPECT_EQ(tensor_calls_of(model), 4U * 4 * 4);  // 4 layers, 4 micro-batches, two each way
  model.recomputes = true;
  EXPECT_EQ(tensor_calls_of(model), 4U * 4 * 6);
}

TEST(Training, AGpuSaysWhatARankComputes) {
  TrainingModel model = small_model();
  model.gpu = *compute::find_gpu("h100-sxm");
  model.data = 1;
  // Kernels of this size wait for the host: 1.93 times what a bare loop takes for a layer.
  const ComputeTimes times = times_of(model);
  EXPECT_NEAR(times.attention[0].seconds() + times.feed_forward[0].seconds(), 1.93 * 330e-6, 30e-6);
  EXPECT_NEAR(times.attention[1].seconds() + times.feed_forward[1].seconds(), 1.93 * 1105e-6, 50e-6);
  EXPECT_GT(times.optimizer.count, 0);
  model.has_utilisation = true;  // It counts, whatever the GPU.
  EXPECT_EQ(times_of(model).attention[0].count + times_of(model).feed_forward[0].count, layer_ps);
}

TEST(Training, PipelinesHaveTheirBubble) {
  for (const std::int64_t micro_batches : {4, 8, 12}) {
    TrainingModel model = small_model();
    model.pipeline = 4;
    model.batch = micro_batches;
    const JobReport report = run(model, fast_star(4));
    // Each stage has a layer; (m + p - 1) times forward and backward pass one after the other.
    const double expected = static_cast<double>((micro_batches + 3) * 3 * layer_ps);
    EXPECT_NEAR(static_cast<double>(report.elapsed.count) / expected, 1, 1e-6);
    const double bubble = 1 - static_cast<double>(report.ranks[0].compute) / static_cast<double>(report.elapsed.count);
    EXPECT_NEAR(bubble, 3.0 / static_cast<double>(micro_batches + 3), 1e-6);
  }
}

/// GPipe's bubble is that of 1F1B; with gradients of weights put off it is shorter, and stages of unlike length take as
/// long
/// as the longest.
TEST(Training, OrdersOfAPipeline) {
  TrainingModel model = small_model();
  model.pipeline = 4;
  model.batch = 8;
  const auto elapsed = [&] { return run(model, fast_star(4)).elapsed.count; };
  const std::int64_t alternating = elapsed();
  model.order = compute::Order::forwards_first;
  EXPECT_NEAR(static_cast<double>(elapsed()) / static_cast<double>(alternating), 1, 1e-6);
  model.order = compute::Order::deferred_weights;
  const JobReport zero = run(model, fast_star(4));
  EXPECT_EQ(zero.ranks[0].compute, 8 * 3 * layer_ps);
  // Of (p - 1)(forward + backward) what weights take twice is gone: their products are 24 b s h^2 of a layer's
  // operations.
  const double weights = 24.0 * 8 * 256 / 53'248 * static_cast<double>(layer_ps);
  const double expected = static_cast<double>(alternating) - 3 * 2 * weights;
  EXPECT_NEAR(static_cast<double>(zero.elapsed.count) / expected, 1, 1e-6);
  model.order = compute::Order::alternating;
  model.layers = 5;
  model.stage_layers = {1, 2, 1, 1};
  // The stage of two layers takes 8 * 6; before it a forward pass (1), behind it a backward one (2), and it waits for
  // the
  // first backward pass from below (6) after two more forward passes of its own (4).
  EXPECT_NEAR(static_cast<double>(elapsed()) / static_cast<double>(53 * layer_ps), 1, 1e-6);
  model.stage_layers = {1, 2, 1};
  Job job;
  const auto refused = add_training(job, model, first_ranks(4));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "stage_layers has 3 stages with 4 layers, and the model 4 stages with 5 layers");
}

TEST(Training, SelectiveRecomputeRepeatsAttentionBetweenItsProducts) {
  TopologyBuilder builder;
  builder.rank("r0");
  TrainingModel model = small_model();
  model.recomputes_attention = true;
  constexpr std::int64_t scores_ps = 4 * 8 * 8 * 16 * 1'000;  // 4 s operations for each token and width.
  EXPECT_EQ(run(model, *std::move(builder).build("one")).elapsed.count, 4 * 4 * (3 * layer_ps + scores_ps));
}

/// Narayanan et al., SC 2021, section 2.2.2: with v stages to a rank the bubble is (p - 1) / (v m) of the ideal time.
TEST(Training, InterleavedPipelinesHaveASmallerBubble) {
  for (const std::int64_t places : {2, 4}) {
    for (const std::int64_t stages : {1, 2, 3, 4}) {
      for (const std::int64_t rounds : {1, 2, 3}) {
        TrainingModel model = small_model();
        model.layers = places * stages;
        model.pipeline = places;
        model.virtual_stages = stages;
        model.batch = rounds * places;
        const JobReport report = run(model, fast_star(static_cast<std::size_t>(places)));
        // A rank's stages have a layer each, forward and twice that back.
        const auto ideal = static_cast<double>(model.batch * stages * 3 * layer_ps);
        const double bubble = static_cast<double>(places - 1) / static_cast<double>(stages * model.batch);
        EXPECT_NEAR(static_cast<double>(report.elapsed.count) / (ideal * (1 + bubble)), 1, 1e-6)
            << places << " places, " << stages << " stages, " << rounds << " rounds";
        for (const RankTime& rank : report.ranks) EXPECT_EQ(rank.compute, model.batch * stages * 3 * layer_ps);
      }
    }
  }
}

TEST(Training, InterleavedStepsMoveTheSameBytes) {
  TrainingModel model = small_model();
  model.layers = 8;
  model.pipeline = 2;
  model.data = 2;
  model.tensor = 2;
  model.vocabulary = 64;
  model.batch = 8;
  const auto bytes_by_call = [&] {
    Job job;
    EXPECT_TRUE(add_training(job, model, first_ranks(8)).has_value());
    std::map<std::string, std::int64_t> bytes;
    for (const Call& call : job.calls()) bytes[job.label(call.label)] += call.size.count;
    return bytes;
  };
  auto plain = bytes_by_call();
  model.virtual_stages = 4;
  auto interleaved = bytes_by_call();
  EXPECT_EQ(plain["gradients"], interleaved["gradients"]);
  EXPECT_EQ(plain["tensor"], interleaved["tensor"]);
  // 7 boundaries of stages instead of 1.
  EXPECT_EQ(7 * plain["activations"], interleaved["activations"]);
  EXPECT_EQ(7 * plain["activation gradients"], interleaved["activation gradients"]);
}

TEST(Training, RefusesWhatCannotBeInterleaved) {
  Job job;
  TrainingModel model = small_model();
  model.virtual_stages = 2;
  auto added = add_training(job, model, first_ranks(1));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().message, "virtual_stages is given, but there is no pipeline");
  model.pipeline = 2;
  model.batch = 5;
  added = add_training(job, model, first_ranks(2));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().message, "5 micro-batches cannot be interleaved: pipeline is 2");
  model.batch = 4;
  model.virtual_stages = 3;
  added = add_training(job, model, first_ranks(2));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().message, "4 layers cannot be shared evenly: pipeline x virtual_stages is 6");
}

TEST(Training, GradientsInOneBucketAreExposed) {
  TrainingModel model = small_model();
  model.data = 4;
  model.gradients = ElementType::float32;
  RunSettings settings;
  settings.chunk = {1 << 20};
  const JobReport report = run(model, test::star(4), settings);
  // 4 layers x 12 h^2 parameters of 4 bytes; a ring in whole shards over two links per hop: 2 (N - 1) (2 us + S / N / 1
  // GB/s).
  const std::int64_t bytes = 4 * 12 * 256 * 4;
  const std::int64_t ring = 6 * (2'000'000 + bytes / 4 * 1000);
  EXPECT_EQ(report.elapsed.count, 4 * 3 * layer_ps + ring);
  EXPECT_EQ(report.ranks[0].exposed, ring);
}

TEST(Training, BucketsHideGradientsBehindTheBackwardPass) {
  TrainingModel model = small_model();
  model.data = 4;
  const std::int64_t one = run(model, test::star(4)).elapsed.count;
  model.bucket = {1};
  EXPECT_LT(run(model, test::star(4)).elapsed.count, one);
}

TEST(Training, ShardingNeedsTheSameStepsMoreOften) {
  for (const Sharding sharding : {Sharding::optimizer, Sharding::full}) {
    TrainingModel model = small_model();
    model.data = 4;
    model.steps = 2;
    model.sharding = sharding;
    const JobReport report = run(model, test::star(4));
    EXPECT_GT(report.elapsed.count, 2 * 4 * 3 * layer_ps);
    EXPECT_EQ(report.ranks[0].compute, 2 * 4 * 3 * layer_ps);
  }
}

TEST(Training, AllWaysOfSharingTogether) {
  TrainingModel model = small_model();
  model.tensor = 2;
  model.pipeline = 2;
  model.data = 4;
  model.experts = 4;
  model.experts_per_token = 2;
  model.expert = 2;
  model.sequence_parallel = true;
  model.vocabulary = 64;
  const Topology topology = test::star(16);
  Job job;
  ASSERT_TRUE(add_training(job, model, first_ranks(16)).has_value());
  ASSERT_TRUE(check_job(job, topology).has_value());
  const auto report = run_job(job, topology, {}, {});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  std::vector<std::string> labels;
  for (const CallSummary& call : summarize_calls(job, *report)) {
    labels.push_back(call.label + " " + std::string(to_string(call.kind)));
    EXPECT_GE(call.worst_slowdown, 0.999) << call.label;
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"tensor all_gather", "tensor reduce_scatter", "experts all_to_all",
                                              "activations broadcast", "activation gradients broadcast",
                                              "gradients all_reduce", "expert gradients all_reduce"}));
}

TEST(Training, RefusesWhatDoesNotDivide) {
  Job job;
  TrainingModel model = small_model();
  model.pipeline = 3;
  model.data = 1;
  auto added = add_training(job, model, first_ranks(3));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().message, "4 layers cannot be shared evenly: pipeline is 3");
  added = add_training(job, model, first_ranks(4));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().message, "tensor 1 x pipeline 3 x data 1 are not the 4 ranks");
}

TEST(FlopRate, ReadsUnits) {
  EXPECT_EQ(parse_flop_rate("989 TFLOP/s")->per_second, 989'000'000'000'000);
  EXPECT_EQ(parse_flop_rate("1.5 PFLOPS")->per_second, 1'500'000'000'000'000);
  for (const char* text : {"", "989", "TFLOP/s", "1 TB/s", "0 FLOP/s", "-1 TFLOP/s", "1..5 TFLOP/s", "0.5 FLOP/s"}) {
    EXPECT_FALSE(parse_flop_rate(text).has_value()) << text;
  }
}

TEST(Parallelisms, AreAllWhoseProductIsTheRanks) {
  // 4 = T P D in 6 ways.
  TrainingModel model = small_model();
  const std::vector<Parallelism> dense = {{1, 1, 4, 1}, {1, 2, 2, 1}, {1, 4, 1, 1},
                                          {2, 1, 2, 1}, {2, 2, 1, 1}, {4, 1, 1, 1}};
  EXPECT_EQ(list_parallelisms(model, 4), dense);
  // Two experts may be with one rank or two, where there are two replicas or four.
  model.experts = 2;
  const std::vector<Parallelism> routed = {{1, 1, 4, 1}, {1, 1, 4, 2}, {1, 2, 2, 1}, {1, 2, 2, 2}, {1, 4, 1, 1},
                                           {2, 1, 2, 1}, {2, 1, 2, 2}, {2, 2, 1, 1}, {4, 1, 1, 1}};
  EXPECT_EQ(list_parallelisms(model, 4), routed);
}

TEST(Parallelisms, ThatDoNotDivideTheModelAreRefusedBeforeAnythingIsAdded) {
  const TrainingModel model = small_model();
  const auto whole = check_training(spread(model, {2, 1, 2, 1}), 4);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->data, 2);
  // 4 heads are not shared by 8 ranks.
  const auto refused = check_training(spread(model, {8, 1, 1, 1}), 8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "4 heads cannot be shared evenly: tensor is 8");
}

TEST(Parallelisms, EveryCallOfAStepHasAUse) {
  TrainingModel model = small_model();
  model.experts = 2;
  model.sharding = Sharding::full;
  Job job;
  ASSERT_TRUE(add_training(job, spread(model, {2, 2, 2, 2}), first_ranks(8)));
  std::set<std::string_view> uses;
  for (std::size_t i = 0; i < job.calls().size(); ++i) {
    const std::string& label = job.label(job.calls()[i].label);
    EXPECT_FALSE(use_of_call(label).empty()) << label;
    uses.insert(use_of_call(label));
  }
  EXPECT_EQ(uses, (std::set<std::string_view>{"tensor", "pipeline", "data", "expert"}));
  EXPECT_EQ(use_of_call("forward 0"), "");
}

}  // namespace
}  // namespace espalier::scenario
