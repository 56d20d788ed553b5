#include "compute/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace espalier::compute {
namespace {

/// Stages alike: a forward takes 1, a backward 2, half of which weights' gradients are.
PipelineShape shape(std::int64_t places, std::int64_t micro_batches, Order order, std::int64_t virtual_stages = 1) {
  PipelineShape of;
  of.places = places;
  of.micro_batches = micro_batches;
  of.order = order;
  of.virtual_stages = virtual_stages;
  of.stages.assign(static_cast<std::size_t>(places * virtual_stages), BothWays{1, 2});
  of.weights.assign(of.stages.size(), 1);
  return of;
}

TEST(Pipeline, BubblesAreThoseOfThePapers) {
  // (P - 1)(F + B) beside M (F + B), whether in turn or all forwards first; a third of it with weights put off.
  for (const std::int64_t places : {2, 4, 8}) {
    for (const std::int64_t micro_batches : {8, 32}) {
      const double busy = 3.0 * static_cast<double>(micro_batches), bubble = 3.0 * static_cast<double>(places - 1);
      EXPECT_DOUBLE_EQ(pipeline_seconds(shape(places, micro_batches, Order::alternating)), busy + bubble);
      EXPECT_DOUBLE_EQ(pipeline_seconds(shape(places, micro_batches, Order::forwards_first)), busy + bubble);
      EXPECT_DOUBLE_EQ(pipeline_seconds(shape(places, micro_batches, Order::deferred_weights)), busy + bubble / 3);
      EXPECT_DOUBLE_EQ(pipeline_seconds(shape(places, micro_batches, Order::alternating, 2)), 2 * busy + bubble);
    }
  }
}

TEST(Pipeline, EveryOrderHasEveryPassOnceAndInTurn) {
  for (const Order order : {Order::alternating, Order::forwards_first, Order::deferred_weights}) {
    const PipelineShape of = shape(4, 8, order);
    for (std::int64_t place = 0; place < of.places; ++place) {
      std::vector<std::vector<std::int64_t>> seen(3);
      std::int64_t kept = 0, most = 0;
      const bool is_deferred = order == Order::deferred_weights;
      for (const Pass& pass : of.passes(place)) {
        seen[static_cast<std::size_t>(pass.kind)].push_back(pass.micro_batch);
        EXPECT_EQ(pass.stage, place);
        kept += pass.kind == PassKind::forward ? 1 : 0;
        most = std::max(most, kept);
        kept -= pass.kind == (is_deferred ? PassKind::weights : PassKind::backward) ? 1 : 0;
      }
      EXPECT_EQ(kept, 0);
      EXPECT_EQ(most, of.under_way(place)) << place;
      for (std::int64_t i = 0; i < of.micro_batches; ++i) {
        EXPECT_EQ(seen[0][static_cast<std::size_t>(i)], i);
        EXPECT_EQ(seen[1][static_cast<std::size_t>(i)], i);
        if (is_deferred) {
          EXPECT_EQ(seen[2][static_cast<std::size_t>(i)], i);
        }
      }
      EXPECT_EQ(seen[2].size(), is_deferred ? 8U : 0U);
    }
  }
  // With weights put off every place keeps as much as the first.
  EXPECT_EQ(shape(4, 8, Order::deferred_weights).under_way(3), 4);
  EXPECT_EQ(shape(4, 8, Order::forwards_first).under_way(3), 8);
}

}  // namespace
}  // namespace espalier::compute
