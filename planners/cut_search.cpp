#include "planners/cut_search.h"

#include <algorithm>
#include <utility>

namespace espalier {
namespace {

/// Smaller chunks are tried up to here: simulating one takes some tenths of a second.
constexpr double most_tried_hops = 2'000'000;

/// Faster by more than this is a gain.
constexpr double gain = 0.998;

class Search {
 public:
  Search(const ChunkModel& chunks, Bytes size, const FixedCut& fixed, const EvaluateCut& evaluate)
      : chunks_(chunks), size_(size), fixed_(fixed), evaluate_(evaluate) {}

  Result<RunReport> run() {
    const Bytes chunk = fixed_.chunk.value_or(chunks_.choose(size_));
    auto first = evaluate_({chunk, fixed_.ahead.value_or(0)});
    if (!first) return first;
    best_ = std::move(*first);
    if (!fixed_.ahead && !is_good_enough()) try_chunk(chunk, true);
    if (!fixed_.chunk) {
      for (const int step : {2, -2, 1, -1}) climb(step);
    }
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool is_good_enough() const {
    constexpr double close = 1.005;
    return best_.elapsed.seconds() <= std::max(close * chunks_.least_time(size_), chunks_.pipelined_time(size_));
  }

  /// Whether it is faster than all before; what cannot be run is not.
  bool try_chunk(Bytes chunk, bool in_step) {
    const std::uint32_t ahead = fixed_.ahead.value_or(in_step ? chunks_.rounds_ahead(size_, chunk) : 0);
    if (chunk == best_.chunk && ahead == best_.ahead) return false;
    auto report = evaluate_({chunk, ahead});
    if (!report || report->elapsed.seconds() >= gain * best_.elapsed.seconds()) return false;
    best_ = std::move(*report);
    return true;
  }

  /// Doubles the chunk `step` times, or halves it, as long as that gains.
  void climb(int step) {
    while (!is_good_enough()) {
      const Bytes chunk{step > 0 ? best_.chunk.count << step : best_.chunk.count >> -step};
      if (chunk < ChunkModel::smallest_chunk || chunk > size_) return;
      if (step < 0 && chunks_.chunk_hops(size_, chunk) > most_tried_hops) return;
      if (!try_chunk(chunk, best_.ahead > 0)) return;
    }
  }

  const ChunkModel& chunks_;
  Bytes size_;
  const FixedCut& fixed_;
  const EvaluateCut& evaluate_;
  RunReport best_;
};

}  // namespace

Result<RunReport> find_best_cut(const ChunkModel& chunks, Bytes size, const FixedCut& fixed,
                                const EvaluateCut& evaluate) {
  return Search(chunks, size, fixed, evaluate).run();
}

}  // namespace espalier
