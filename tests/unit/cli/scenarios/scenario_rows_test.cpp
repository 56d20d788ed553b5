#include "cli/scenarios/scenario_rows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace espalier::cli {
namespace {

class FewerBatches : public testing::TestWithParam<const char*> {
 protected:
  FewerBatches()
      : file_(std::filesystem::path(testing::TempDir()) / ("fewer-batches-" + std::to_string(::getpid()) + ".yaml")) {
    std::ofstream(file_) << "espalier_scenario: 1\ntraining: {model: llama-3-8b, batch: 96, "
                            "sequence_parallel: true, recompute: selective, "
                         << GetParam() << "}\n";
  }
  ~FewerBatches() override { std::filesystem::remove(file_); }

  ScenarioCase step() const {
    ScenarioCase one;
    one.scenario.file = file_.string();
    one.topology.argument = ESPALIER_SOURCE_DIR "/configs/dgx-h200-cluster.yaml";
    one.scenario.profile.name = ESPALIER_SOURCE_DIR "/configs/profiles/nccl-hopper.yaml";
    return one;
  }

 private:
  std::filesystem::path file_;
};

/// A step's figures from two shorter ones, beside those of all its micro-batches.
TEST_P(FewerBatches, AFullPipelineGoesOnAsItBegan) {
  Console console;
  console.quiet = true;
  ScenarioCase one = step();
  const auto whole = run_case(console, one);
  ASSERT_TRUE(whole && *whole && (*whole)->figures);
  EXPECT_FALSE((*whole)->fewer);
  one.fewer = scenario::FewerBatches{4, 8};
  const auto estimated = run_case(console, one);
  ASSERT_TRUE(estimated && *estimated && (*estimated)->figures);
  EXPECT_EQ((*estimated)->fewer, one.fewer);
  const ScenarioFigures& exact = *(*whole)->figures;
  const ScenarioFigures& figures = *(*estimated)->figures;
  EXPECT_NEAR(figures.step().seconds(), exact.step().seconds(), exact.step().seconds() * 2e-3);
  EXPECT_NEAR(figures.time.compute, exact.time.compute, 2e-3);
  EXPECT_NEAR(figures.time.exposed, exact.time.exposed, 2e-3);
  EXPECT_NEAR(figures.time.waiting, exact.time.waiting, 2e-3);
  for (std::size_t i = 0; i < call_uses.size(); ++i) EXPECT_NEAR(figures.exposed_by[i], exact.exposed_by[i], 2e-3);
  EXPECT_EQ(figures.training->tokens, exact.training->tokens);
  EXPECT_EQ(figures.training->memory.total(), exact.training->memory.total());
}

INSTANTIATE_TEST_SUITE_P(Splits, FewerBatches,
                         testing::Values("tensor: 8, pipeline: 4", "tensor: 4, pipeline: 4, sharding: optimizer",
                                         "tensor: 16, pipeline: 1", "tensor: 8, pipeline: 2, virtual_stages: 4",
                                         "tensor: 8, pipeline: 1, sharding: full"));

TEST(FewerBatchesOf, AStepOfFewTasksOrMicroBatchesIsRunWhole) {
  scenario::TrainingModel model;
  model.layers = 32;
  model.batch = 512;
  model.micro_batch = 1;
  model.data = 1;
  model.pipeline = 3;
  EXPECT_FALSE(scenario::fewer_batches(model, 1e9));
  const auto fewer = scenario::fewer_batches(model, 1);
  EXPECT_EQ(fewer, (scenario::FewerBatches{6, 12}));  // whole rounds of the pipeline
  model.batch = 23;
  EXPECT_FALSE(scenario::fewer_batches(model, 1));
}

}  // namespace
}  // namespace espalier::cli
