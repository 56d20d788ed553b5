#include "compute/layer.h"

#include <gtest/gtest.h>

#include "compute/memory.h"

namespace espalier::compute {
namespace {

const Gpu& hopper() { return **find_gpu("h100-sxm"); }

ModelShape gpt() { return {.layers = 24, .hidden = 2048, .heads = 16, .vocabulary = 50304, .positions = 2048}; }

TEST(Model, CountsItsWeights) {
  // 24 layers of 12 h^2 weights and two norms of 2 h, the embedding, 2048 positions and a last norm.
  const std::int64_t h = 2048;
  EXPECT_EQ(gpt().weights(), 24 * (12 * h * h + 4 * h) + 50304 * h + 2048 * h + 2 * h);
}

TEST(Layer, WaitsForTheHostWhereItsKernelsAreSmall) {
  const Slice slice{.tensor = 8, .sequence = 512};
  const BothWays seconds = layer_seconds(hopper(), gpt(), slice, {});
  EXPECT_NEAR(seconds.forward + seconds.backward, 1.762e-3, 0.01e-3);
}

TEST(Layer, FullRecomputeRunsTheForwardPassAgain) {
  const Slice slice{.micro_batch = 4, .sequence = 2048};
  const HalfTime once = attention_half(hopper(), gpt(), slice, {});
  EXPECT_DOUBLE_EQ(once.with(Recompute::full).backward, once.backward + once.forward);
  EXPECT_DOUBLE_EQ(once.with(Recompute::selective).backward, once.backward + once.core);
}

TEST(Memory, ALayerKeepsWhatWasMeasured) {
  // One layer of this model kept 134,382,592 bytes of a sequence of 2048.
  EXPECT_NEAR(kept_bytes(gpt(), {.sequence = 2048}, {}, Recompute::none, true), 134'382'592, 200'000);
}

TEST(Memory, SlicesOfALayerKeepLess) {
  EXPECT_NEAR(kept_bytes(gpt(), {.tensor = 8, .sequence = 2048}, {}, Recompute::none, true), 46'187'520, 200'000);
}

}  // namespace
}  // namespace espalier::compute
