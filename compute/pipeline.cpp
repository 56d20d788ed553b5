#include "compute/pipeline.h"

#include <algorithm>

namespace espalier::compute {
namespace {

struct Pass {
  bool is_forward;
  std::int64_t micro_batch;
  std::int64_t stage;
};

/// The passes of each place in their order, and when each is through.
class Pipeline {
 public:
  explicit Pipeline(const PipelineShape& shape)
      : shape_(shape),
        stages_(shape.places * shape.virtual_stages),
        all_(shape.micro_batches * shape.virtual_stages),
        through_{std::vector<double>(count(), -1), std::vector<double>(count(), -1)} {}

  double run() {
    std::vector<std::int64_t> next(static_cast<std::size_t>(shape_.places), 0);
    std::vector<double> free(next.size(), 0);
    // A place goes on until a pass waits for another place; some place always can.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t place = 0; place < next.size(); ++place) {
        while (next[place] < 2 * all_ && pass(static_cast<std::int64_t>(place), next[place], free[place])) {
          ++next[place];
          moved = true;
        }
      }
    }
    return *std::ranges::max_element(free);
  }

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(stages_ * shape_.micro_batches); }
  [[nodiscard]] double& through(const Pass& pass) {
    return through_[pass.is_forward ? 0 : 1]
                   [static_cast<std::size_t>(pass.stage * shape_.micro_batches + pass.micro_batch)];
  }

  /// Runs a place's pass number `number` if what it needs is there.
  bool pass(std::int64_t place, std::int64_t number, double& free) {
    const Pass own = nth(place, number);
    double ready = 0;
    const bool needs = own.is_forward ? own.stage > 0 : own.stage < stages_ - 1;
    if (needs) {
      const double before = through({own.is_forward, own.micro_batch, own.stage + (own.is_forward ? -1 : 1)});
      if (before < 0) return false;
      ready = before + (shape_.places > 1 ? shape_.send : 0);
    } else if (!own.is_forward) {
      ready = through({true, own.micro_batch, own.stage});
      if (ready < 0) return false;
    }
    const BothWays& time = shape_.stages[static_cast<std::size_t>(own.stage)];
    free = std::max(free, ready) + (own.is_forward ? time.forward : time.backward);
    through(own) = free;
    return true;
  }

  [[nodiscard]] Pass nth(std::int64_t place, std::int64_t number) const {
    const std::int64_t ahead = forwards_ahead(place);
    if (number < ahead) return turn(place, true, number);
    if (number >= 2 * all_ - ahead) return turn(place, false, number - all_);
    const std::int64_t pair = (number - ahead) / 2;
    return (number - ahead) % 2 == 0 ? turn(place, true, ahead + pair) : turn(place, false, pair);
  }

  [[nodiscard]] std::int64_t forwards_ahead(std::int64_t place) const {
    const std::int64_t behind = shape_.places - place - 1;
    if (shape_.virtual_stages == 1) return std::min(all_, behind);
    if (shape_.micro_batches == shape_.places) return all_;
    return std::min(all_, 2 * behind + (shape_.virtual_stages - 1) * shape_.places);
  }

  [[nodiscard]] Pass turn(std::int64_t place, bool is_forward, std::int64_t number) const {
    const std::int64_t v = shape_.virtual_stages;
    const std::int64_t round = number / (shape_.places * v), in_round = number / shape_.places % v;
    const std::int64_t own = is_forward ? in_round : v - 1 - in_round;
    return {is_forward, round * shape_.places + number % shape_.places, own * shape_.places + place};
  }

  const PipelineShape& shape_;
  std::int64_t stages_;
  std::int64_t all_;
  std::vector<double> through_[2];
};

}  // namespace

double pipeline_seconds(const PipelineShape& shape) { return Pipeline(shape).run(); }

}  // namespace espalier::compute
