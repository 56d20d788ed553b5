#include "scenario/workload/training_figures.h"

#include <gtest/gtest.h>

#include "tests/unit/scenario/jobs.h"

namespace espalier::scenario {
namespace {

/// Layers of 12 h^2 = 12 x 64^2 = 49,152 parameters.
TrainingModel model_of_eight_layers() {
  TrainingModel model;
  model.layers = 8;
  model.hidden = 64;
  model.heads = 4;
  model.sequence = 16;
  model.batch = 8;
  model.data = 1;
  model.rate = {1'000'000'000'000};
  return model;
}

TEST(TrainingFigures, CountsTokensAndOperations) {
  const TrainingFigures figures = figures_of(model_of_eight_layers());
  EXPECT_EQ(figures.tokens, 8 * 16);
  // Narayanan et al.: 24 B s h^2 (1 + s / 6h) per layer forward, and three times that with backward.
  const double expected = 3.0 * 8 * 24 * 8 * 16 * 64 * 64 * (1 + 16.0 / (6 * 64));
  EXPECT_NEAR(figures.operations / expected, 1, 1e-12);
  EXPECT_NEAR(figures.tokens_per_second({1'000'000'000}), 128e3, 1e-6);  // in 1 ms
  EXPECT_NEAR(figures.model_flops_utilisation({1'000'000'000}), expected / 1e9, 1e-9);
  TrainingModel again = model_of_eight_layers();
  again.recomputes = true;
  EXPECT_EQ(figures_of(again).operations, figures.operations);  // what is computed again is no more of the model
}

// All of it at 16 bits: 2 bytes of a parameter, 2 of a gradient, 12 of Adam.
TEST(TrainingFigures, StateOfParametersByHowItIsSharded) {
  constexpr std::int64_t parameters = 8 * 49'152;
  const MemoryNeed alone = memory_of_place(model_of_eight_layers(), 0);
  EXPECT_EQ(alone.parameters.count, 2 * parameters);
  EXPECT_EQ(alone.gradients.count, 2 * parameters);
  EXPECT_EQ(alone.optimizer.count, 12 * parameters);
  TrainingModel model = model_of_eight_layers();
  model.data = 4;
  model.sharding = Sharding::optimizer;
  EXPECT_EQ(memory_of_place(model, 0).parameters.count, 2 * parameters);
  EXPECT_EQ(memory_of_place(model, 0).optimizer.count, 12 * parameters / 4);
  model.sharding = Sharding::full;  // a quarter of all, and one layer whole
  EXPECT_EQ(memory_of_place(model, 0).parameters.count, 2 * (parameters / 4 + 49'152));
  EXPECT_EQ(memory_of_place(model, 0).gradients.count, 2 * parameters / 4);
  model.sharding = Sharding::none;
  model.tensor = 2;
  EXPECT_EQ(memory_of_place(model, 0).optimizer.count, 12 * parameters / 2);
  model.type = model.gradients = ElementType::float32;
  EXPECT_EQ(memory_of_place(model, 0).optimizer.count, 8 * parameters / 2);
}

// Korthikanti et al., table 2, without the scores: s b h (10 + 24 / t), with sequence parallelism 34 s b h / t, with
// everything computed again 2 s b h.
TEST(TrainingFigures, ActivationsOfALayerAsPublished) {
  constexpr std::int64_t sbh = 16 * 64;
  TrainingModel model = model_of_eight_layers();
  model.layers = 1;
  EXPECT_EQ(memory_of_place(model, 0).activations.count, 34 * sbh);
  model.tensor = 4;
  EXPECT_EQ(memory_of_place(model, 0).activations.count, (10 + 6) * sbh);
  model.sequence_parallel = true;
  EXPECT_EQ(memory_of_place(model, 0).activations.count, 34 * sbh / 4);
  model.sequence_parallel = false;
  model.recomputes = true;
  EXPECT_EQ(memory_of_place(model, 0).activations.count, 2 * sbh);
}

// Of 4 places with 2 layers each the first keeps 4 micro-batches at once, the last one.
TEST(TrainingFigures, EarlierPlacesKeepMoreMicroBatches) {
  TrainingModel model = model_of_eight_layers();
  model.pipeline = 4;
  for (std::int64_t place = 0; place < 4; ++place) {
    EXPECT_EQ(memory_of_place(model, place).activations.count, (4 - place) * 2 * 34 * 16 * 64);
  }
  EXPECT_EQ(figures_of(model).place, 0);
  model.batch = 2;  // two micro-batches: no more than they are kept
  EXPECT_EQ(memory_of_place(model, 0).activations.count, 2 * 2 * 34 * 16 * 64);
}

}  // namespace
}  // namespace espalier::scenario
