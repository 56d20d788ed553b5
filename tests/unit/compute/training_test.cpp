#include "compute/training.h"

#include <gtest/gtest.h>

#include "compute/layer.h"

namespace espalier::compute {
namespace {

TrainingPlan plan_of_context(ContextExchange exchange) {
  TrainingPlan plan;
  plan.model = {.layers = 8, .hidden = 4096, .heads = 32, .is_gated = true};
  plan.slice = {.context = 4, .sequence = 65536};
  plan.context_exchange = exchange;
  plan.overlaps_gradients = plan.overlaps_parameters = false;
  return plan;
}

double seconds_with(const TrainingPlan& plan, double gather, double scatter, double exchange) {
  const Gpu& gpu = **find_gpu("h100-sxm");
  return step_time(gpu, plan,
                   [&](CallKind kind, const CallGroup& group, double bytes) {
                     EXPECT_GT(bytes, 0);
                     if (group.count != 4) return 0.0;
                     switch (kind) {
                       case CallKind::all_gather: return gather;
                       case CallKind::reduce_scatter: return scatter;
                       case CallKind::all_to_all: return exchange;
                       default: return 0.0;
                     }
                   })
      .seconds;
}

/// Kernels of this size leave the host far behind, so that times add up.
TEST(TrainingStep, ExchangesOfContextRanksAreHiddenByTheirAttentionInARing) {
  const TrainingPlan ring = plan_of_context(ContextExchange::ring);
  const Gpu& gpu = **find_gpu("h100-sxm");
  const HalfTime attention = attention_half(gpu, ring.model, ring.slice, ring.software);
  const double still = seconds_with(ring, 0, 0, 0);
  EXPECT_NEAR(seconds_with(ring, 0.7 * attention.core, 0, 0) / still, 1, 1e-6);  // Three quarters hide it.
  const double gather = 2 * attention.core_back, scatter = attention.core_back;
  const double forward = gather + attention.core / 4 - attention.core;
  const double backward = gather + scatter - attention.core_back;
  EXPECT_NEAR((seconds_with(ring, gather, scatter, 0) - still) / (8 * (forward + backward)), 1, 1e-3);

  const TrainingPlan gathered = plan_of_context(ContextExchange::all_gather);
  EXPECT_NEAR((seconds_with(gathered, gather, scatter, 0) - still) / (8 * (2 * gather + scatter)), 1, 1e-3);
  const TrainingPlan exchanged = plan_of_context(ContextExchange::all_to_all);
  EXPECT_NEAR((seconds_with(exchanged, 0, 0, gather) - still) / (8 * 4 * gather), 1, 1e-3);
}

TEST(TrainingStep, ContextRanksExchangeWhatTheyLack) {
  const TrainingPlan plan = plan_of_context(ContextExchange::all_to_all);
  const ContextBytes bytes = context_bytes(plan);
  EXPECT_EQ(bytes.gathered, 65536.0 * 2 * 4096 * 2);
  EXPECT_EQ(bytes.exchanged_in, 65536.0 / 4 * 3 * 4096 * 2);
  EXPECT_EQ(bytes.exchanged_out, 65536.0 / 4 * 4096 * 2);
}

/// Five layers in four stages of two places: the first stage has two. Place 0 keeps five passes: three micro-batches of
/// its first stage, two of its second.
TEST(TrainingStep, EachStageKeepsItsOwnLayers) {
  TrainingPlan plan;
  plan.model = {.layers = 5, .hidden = 1024, .heads = 8};
  plan.slice = {.sequence = 1024};
  plan.pipeline = 2;
  plan.virtual_stages = 2;
  plan.batch = 8;
  const double of_layer = kept_bytes(plan.model, plan.slice, plan.software, plan.recompute, true);
  EXPECT_EQ(plan.pipeline_order().under_way_by_stage(0), (std::vector<std::int64_t>{3, 2}));
  EXPECT_NEAR(memory_of_place(plan, 0).activations, (3 * 2 + 2 * 1) * of_layer, 1);
}

/// The optimizer's state of experts is shared by their own replicas.
TEST(TrainingStep, ExpertsHaveFewerReplicas) {
  TrainingPlan plan;
  plan.model = {.layers = 2, .hidden = 1024, .heads = 8, .experts = 64, .expert_width = 1024};
  plan.slice = {.expert = 16, .sequence = 1024};
  plan.data = 32;
  plan.batch = 32;
  plan.shards = Shards::optimizer;
  plan.software.kernels = Kernels::fused;
  const auto experts = static_cast<double>(2 * 4 * plan.model.expert_weights());
  const auto shared = static_cast<double>(2 * plan.model.attention_weights());
  EXPECT_NEAR(memory_of_place(plan, 0).optimizer, 12 * (experts / 2 + shared / 32), 1);
}

/// Of four replicas each keeps a quarter of the gradients, and one of two layers' whole: 12 h^2 in fp32.
TEST(TrainingStep, GradientsThatAreSharedTakeTheirShare) {
  TrainingPlan plan;
  plan.model = {.layers = 2, .hidden = 4096, .heads = 32};
  plan.slice = {.sequence = 128};
  plan.software.kernels = Kernels::fused;
  plan.data = plan.batch = 4;
  plan.shards = Shards::optimizer;
  const MemoryUse whole = memory_of_place(plan, 0);
  plan.shards = Shards::gradients;
  const MemoryUse shared = memory_of_place(plan, 0);
  EXPECT_DOUBLE_EQ(shared.gradients, whole.gradients / 4);
  EXPECT_NEAR((shared.working - whole.working) / (4.0 * 12 * 4096 * 4096), 1, 0.01);
}

TEST(TrainingStep, TheRangeIsThatOfGpusThatWereMeasured) {
  TrainingPlan plan = plan_of_context(ContextExchange::ring);
  const auto one = measured_range(**find_gpu("a100-80gb"), plan);
  ASSERT_TRUE(one);
  EXPECT_LT(one->low, 1);
  EXPECT_GT(one->high, 1);
  plan.data = 16;
  const auto several = measured_range(**find_gpu("a100-40gb"), plan);
  ASSERT_TRUE(several);
  EXPECT_NE(one->runs, several->runs);
  EXPECT_FALSE(measured_range(**find_gpu("b200"), plan));
  plan.model.is_causal = false;
  EXPECT_FALSE(measured_range(**find_gpu("a100-80gb"), plan));
}

}  // namespace
}  // namespace espalier::compute
