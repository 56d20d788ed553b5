#include "compute/pipeline.h"

#include <algorithm>

namespace espalier::compute {
namespace {

/// When each pass is through.
class Pipeline {
 public:
  explicit Pipeline(const PipelineShape& shape)
      : shape_(shape),
        stages_(shape.places * shape.virtual_stages),
        through_{std::vector<double>(count(), -1), std::vector<double>(count(), -1)} {
    for (std::int64_t place = 0; place < shape.places; ++place) passes_.push_back(shape.passes(place));
  }

  double run() {
    std::vector<std::size_t> next(passes_.size(), 0);
    std::vector<double> free(next.size(), 0);
    // A place goes on until a pass waits for another place; some place always can.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t place = 0; place < next.size(); ++place) {
        while (next[place] < passes_[place].size() && run_pass(passes_[place][next[place]], free[place])) {
          ++next[place];
          moved = true;
        }
      }
    }
    return *std::ranges::max_element(free);
  }

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(stages_ * shape_.micro_batches); }
  [[nodiscard]] double& through(bool is_forward, std::int64_t micro_batch, std::int64_t stage) {
    return through_[is_forward ? 0 : 1][static_cast<std::size_t>(stage * shape_.micro_batches + micro_batch)];
  }

  /// Runs a pass if what it needs is there.
  bool run_pass(const Pass& own, double& free) {
    const auto at = static_cast<std::size_t>(own.stage);
    const bool is_deferred = shape_.order == Order::deferred_weights;
    if (own.kind == PassKind::weights) {
      free += shape_.weights[at];
      return true;
    }
    const bool is_forward = own.kind == PassKind::forward;
    double ready = 0;
    const bool needs = is_forward ? own.stage > 0 : own.stage < stages_ - 1;
    if (needs) {
      const double before = through(is_forward, own.micro_batch, own.stage + (is_forward ? -1 : 1));
      if (before < 0) return false;
      ready = before + (shape_.places > 1 ? shape_.send : 0);
    } else if (!is_forward) {
      ready = through(true, own.micro_batch, own.stage);
      if (ready < 0) return false;
    }
    const BothWays& time = shape_.stages[at];
    const double backward = time.backward - (is_deferred ? shape_.weights[at] : 0);
    free = std::max(free, ready) + (is_forward ? time.forward : backward);
    through(is_forward, own.micro_batch, own.stage) = free;
    return true;
  }

  const PipelineShape& shape_;
  std::int64_t stages_;
  std::vector<std::vector<Pass>> passes_;  ///< By place.
  std::vector<double> through_[2];
};

/// A place passes P micro-batches through its first stage, then through its second, and so on, then the next P;
/// backwards through its last stage first.
Pass nth_pass(const PipelineOrder& of, std::int64_t place, bool is_forward, std::int64_t number) {
  const PassKind kind = is_forward ? PassKind::forward : PassKind::backward;
  const std::int64_t v = of.virtual_stages;
  if (v == 1) return {kind, number, place};
  const std::int64_t round = number / (of.places * v), turn = number / of.places % v;
  const std::int64_t own = is_forward ? turn : v - 1 - turn;
  return {kind, round * of.places + number % of.places, own * of.places + place};
}

}  // namespace

std::int64_t PipelineOrder::forwards_ahead(std::int64_t place) const {
  const std::int64_t behind = places - place - 1, all = micro_batches * virtual_stages;
  if (order == Order::forwards_first) return all;
  if (virtual_stages == 1) return std::min(all, behind);
  // With one round of micro-batches all forwards come first.
  if (micro_batches == places) return all;
  return std::min(all, 2 * behind + (virtual_stages - 1) * places);
}

std::int64_t PipelineOrder::under_way(std::int64_t place) const {
  const std::int64_t put_off = order == Order::deferred_weights ? place : 0;
  return std::min(micro_batches * virtual_stages, forwards_ahead(place) + 1 + put_off);
}

std::vector<std::int64_t> PipelineOrder::under_way_by_stage(std::int64_t place) const {
  std::vector<std::int64_t> kept(static_cast<std::size_t>(virtual_stages), 0);
  const std::int64_t all = under_way(place);
  for (std::int64_t i = 0; i < all; ++i)
    ++kept[static_cast<std::size_t>(nth_pass(*this, place, true, i).stage / places)];
  return kept;
}

std::vector<Pass> PipelineOrder::passes(std::int64_t place) const {
  const std::int64_t all = micro_batches * virtual_stages, ahead = forwards_ahead(place);
  const bool is_deferred = order == Order::deferred_weights;
  std::vector<Pass> passes;
  const auto backward = [&](std::int64_t number) {
    passes.push_back(nth_pass(*this, place, false, number));
    if (is_deferred && number >= place) passes.push_back({PassKind::weights, number - place, place});
  };
  for (std::int64_t i = 0; i < ahead; ++i) passes.push_back(nth_pass(*this, place, true, i));
  for (std::int64_t i = ahead; i < all; ++i) {
    passes.push_back(nth_pass(*this, place, true, i));
    backward(i - ahead);
  }
  for (std::int64_t i = all - ahead; i < all; ++i) backward(i);
  for (std::int64_t i = std::max<std::int64_t>(0, all - place); is_deferred && i < all; ++i) {
    passes.push_back({PassKind::weights, i, place});
  }
  return passes;
}

double pipeline_seconds(const PipelineShape& shape) { return Pipeline(shape).run(); }

}  // namespace espalier::compute
