#include "scenario/workload/expert_routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>

#include "scenario/run/run_job.h"
#include "scenario/workload/training.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

/// Four experts on two ranks, two of them for a token of 16 elements of two bytes; 8 tokens of a rank.
TrainingModel routed_model() {
  TrainingModel model;
  model.layers = 2;
  model.hidden = 16;
  model.heads = 4;
  model.sequence = 8;
  model.batch = 2;
  model.rate = {1'000'000'000};
  model.data = 2;
  model.expert = 2;
  model.experts = 4;
  model.experts_per_token = 2;
  model.routing.emplace();
  return model;
}

std::shared_ptr<const TrafficMatrix> matrix_of(std::vector<std::int64_t> blocks) {
  return std::make_shared<const TrafficMatrix>(TrafficMatrix{2, std::move(blocks), true});
}

JobReport run(const TrainingModel& model) {
  Job job;
  const auto added = add_training(job, model, {Rank(0), Rank(1)});
  EXPECT_TRUE(added) << added.error().message;
  const auto checked = check_job(job, test::star(2));
  EXPECT_TRUE(checked) << checked.error().message;
  auto report = run_job(job, test::star(2), {}, {});
  EXPECT_TRUE(report) << report.error().message;
  return report ? *std::move(report) : JobReport();
}

TEST(ExpertRouting, BalancedIsAsWithoutRouting) {
  TrainingModel model = routed_model();
  const JobReport routed = run(model);
  model.routing.reset();
  const JobReport plain = run(model);
  EXPECT_EQ(routed.elapsed, plain.elapsed);
  EXPECT_EQ(routed.ranks, plain.ranks);
}

TEST(ExpertRouting, MessagesAndComputingFollowTheMatrix) {
  // Rank 1 receives 3 of 4 parts: load 1.5 and 0.5 of the mean. 8 tokens x 2 copies x 32 B from each rank make 1024 B
  // in all, 768 of them to rank 1: that is S there; back rank 1 sends them.
  TrainingModel model = routed_model();
  model.routing->matrix = matrix_of({1, 3, 1, 3});
  Job job;
  std::optional<RoutingFigures> figures;
  ASSERT_TRUE(add_training(job, model, {Rank(0), Rank(1)}, max_tasks, nullptr, &figures));
  ASSERT_TRUE(figures);
  EXPECT_DOUBLE_EQ(figures->busiest, 1.5);
  EXPECT_DOUBLE_EQ(figures->dropped, 0);
  EXPECT_FALSE(figures->can_place);
  std::size_t there = 0, back = 0;
  for (const Call& call : job.calls()) {
    if (call.matrix.is_none()) continue;
    EXPECT_EQ(call.size.count, 768);
    const std::vector<std::int64_t>& blocks = job.matrix(call.matrix);
    EXPECT_EQ(blocks[3], 3 * blocks[0]);
    if (blocks[1] == 3 * blocks[2]) ++there;
    if (blocks[2] == 3 * blocks[1]) ++back;
  }
  EXPECT_EQ(there, 4U);  // two layers, forward and backward
  EXPECT_EQ(back, 4U);
  // Two layers of one micro-batch, three times their operations: attention alike, experts 0.5 and 1.5 times.
  const JobReport report = run(model);
  const LayerCost cost = cost_of_layer(model);
  const auto picoseconds = [](double operations) { return operations * 1e3; };  // at 1 GFLOP/s
  for (const std::size_t rank : {0U, 1U}) {
    const double experts = static_cast<double>(cost.feed_forward_flops) * (rank == 0 ? 0.5 : 1.5);
    EXPECT_NEAR(static_cast<double>(report.ranks[rank].compute),
                picoseconds(2 * 3 * (static_cast<double>(cost.attention_flops) + experts)), 20);
  }
}

TEST(ExpertRouting, CapacityDropsWhatComesBeyond) {
  TrainingModel model = routed_model();
  model.routing->matrix = matrix_of({1, 3, 1, 3});
  model.routing->capacity = 1;
  Job job;
  std::optional<RoutingFigures> figures;
  ASSERT_TRUE(add_training(job, model, {Rank(0), Rank(1)}, max_tasks, nullptr, &figures));
  EXPECT_DOUBLE_EQ(figures->dropped, 0.25);  // of loads 0.5 and 1.5 there stay 0.5 and 1
  EXPECT_DOUBLE_EQ(figures->busiest, 1);
}

TEST(ExpertRouting, FormatsSetTheBytes) {
  // fp8 with scales: 16 x 1.03125 = 16.5 B a token; balanced S = 8 x 2 x 16.5 = 264 B there, 512 B back.
  TrainingModel model = routed_model();
  model.routing->dispatch = experts::Format::fp8;
  model.routing->combine = experts::Format::bf16;
  Job job;
  ASSERT_TRUE(add_training(job, model, {Rank(0), Rank(1)}));
  std::vector<std::int64_t> sizes;
  for (const Call& call : job.calls()) {
    if (!call.matrix.is_none()) sizes.push_back(call.size.count);
  }
  ASSERT_GE(sizes.size(), 2U);
  EXPECT_EQ(sizes[0], 264);
  EXPECT_EQ(sizes[1], 512);
}

TEST(ExpertRouting, LayersAndPeriodsHaveOrdersOfTheirOwn) {
  TrainingModel model = routed_model();
  model.experts = 16;
  model.steps = 4;
  model.routing->exponent = 1;
  const auto matrices = [&] {
    Job job;
    EXPECT_TRUE(add_training(job, model, {Rank(0), Rank(1)}));
    return job.matrix_count();
  };
  EXPECT_EQ(matrices(), 2U * 2);  // two layers, there and back
  model.routing->changes = 3;
  EXPECT_EQ(matrices(), 2U * 2 * 2);  // steps 0 to 2, and step 3
  model.routing->do_layers_differ = false;
  EXPECT_EQ(matrices(), 2U * 2);
}

TEST(ExpertRouting, ASearchedPlacementIsNoSlower) {
  TrainingModel model = routed_model();
  model.experts = 16;
  model.routing->exponent = 1;
  const JobReport given = run(model);
  model.routing->is_placed = true;
  EXPECT_LE(run(model).elapsed, given.elapsed);
}

TEST(ExpertRouting, RefusesWhatCannotBe) {
  const auto refused = [](const TrainingModel& model) {
    const auto checked = check_training(model, 2);
    return checked ? std::string() : checked.error().message;
  };
  TrainingModel model = routed_model();
  model.expert = 1;
  EXPECT_EQ(refused(model), "routing is given, but experts are not spread over ranks");
  model = routed_model();
  model.routing->matrix =
      std::make_shared<const TrafficMatrix>(TrafficMatrix{3, std::vector<std::int64_t>(9, 1), true});
  EXPECT_EQ(refused(model), "the matrix of experts has 3 ranks, and expert is 2");
}

TEST(ExpertRouting, SkewsAreRead) {
  ExpertRouting routing;
  EXPECT_TRUE(parse_skew("zipf:0.7,seed=12", routing));
  EXPECT_DOUBLE_EQ(routing.exponent, 0.7);
  EXPECT_EQ(routing.seed, 12U);
  EXPECT_TRUE(parse_skew("balanced", routing));
  EXPECT_DOUBLE_EQ(routing.exponent, 0);
  for (const char* const wrong : {"", "zipf", "zipf:", "zipf:-1", "zipf:11", "zipf:nan", "zipf:1,", "zipf:1,seed",
                                  "zipf:1,seed=", "zipf:1,seed=-1", "zipf:1,seed=1x", "zipf:1x", "uniform"}) {
    EXPECT_FALSE(parse_skew(wrong, routing)) << wrong;
  }
}

}  // namespace
}  // namespace espalier::scenario
