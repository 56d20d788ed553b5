#include "planners/cut_search.h"

#include <algorithm>
#include <utility>

namespace espalier::planners {
namespace {

/// Smaller chunks are tried up to here, which takes some tenths of a second to simulate; and up to there where there is
/// more than a hundredth to gain.
constexpr double usual_hops = 4'000'000;
constexpr double most_hops = 16'000'000;

/// Parts of the least time: nothing better is looked for, and nothing that costs much.
constexpr double close = 1.005;
constexpr double far = 1.01;

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
    if (!fixed_.ahead) {
      for (const std::uint32_t factor : {1U, 4U}) {
        const std::uint32_t ahead = factor * chunks_.rounds_ahead(size_, chunk);
        if (ahead > 0 && !is_within(close) && try_cut({chunk, ahead})) ahead_factor_ = factor;
      }
    }
    if (!fixed_.chunk) {
      if (!climb(2) && !climb(-2) && !climb(1)) climb(-1);
    }
    return std::move(best_);
  }

 private:
  /// Whether the best is within a factor of the least time, or takes no more than loads and latencies explain.
  [[nodiscard]] bool is_within(double factor) const {
    return best_.elapsed.seconds() <= std::max(factor * chunks_.least_time(size_), chunks_.pipelined_time(size_));
  }

  /// Whether it is faster than all before; what cannot be run is not.
  bool try_cut(const Cut& cut) {
    auto report = evaluate_(cut);
    if (!report || report->elapsed.seconds() >= gain * best_.elapsed.seconds()) return false;
    best_ = std::move(*report);
    return true;
  }

  /// Doubles the chunk `step` times, or halves it, as long as that gains. Whether it gained at all.
  bool climb(int step) {
    const Bytes before = best_.chunk;
    while (!is_within(close)) {
      const Bytes chunk{step > 0 ? best_.chunk.count << step : best_.chunk.count >> -step};
      if (chunk < ChunkModel::smallest_chunk || chunk > size_) break;
      const double hops = is_within(far) ? usual_hops : most_hops;
      if (step < 0 && chunks_.chunk_hops(size_, chunk) > hops) break;
      const std::uint32_t usual = best_.ahead > 0 ? ahead_factor_ * chunks_.rounds_ahead(size_, chunk) : 0;
      if (!try_cut({chunk, fixed_.ahead.value_or(usual)})) break;
    }
    return best_.chunk != before;
  }

  const ChunkModel& chunks_;
  Bytes size_;
  const FixedCut& fixed_;
  const EvaluateCut& evaluate_;
  RunReport best_;
  std::uint32_t ahead_factor_ = 1;
};

}  // namespace

Result<RunReport> find_best_cut(const ChunkModel& chunks, Bytes size, const FixedCut& fixed,
                                const EvaluateCut& evaluate) {
  return Search(chunks, size, fixed, evaluate).run();
}

}  // namespace espalier::planners
