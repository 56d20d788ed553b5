#include "compare/judgement.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compare/statistics.h"

namespace espalier::compare {
namespace {

/// The size whose time is furthest above its band's, where that is far.
std::optional<PredictedTime> find_odd(std::span<const PredictedTime> times) {
  constexpr double far = 1.6;
  std::optional<PredictedTime> odd;
  double worst = far;
  for (const PredictedTime& time : times) {
    const double factor = time.measured / time.predicted;
    if (factor <= worst) continue;
    worst = factor;
    odd = time;
  }
  return odd;
}

}  // namespace

double Judgement::typical() const { return std::exp(distance); }

Judgement judge(std::span<const PredictedTime> times) {
  Judgement judgement;
  double furthest = -1;
  std::size_t bands = 0;
  for (const SizeBand& band : size_bands) {
    std::vector<double> logs, distances;
    for (const PredictedTime& time : times) {
      if (!band.has(time.size)) continue;
      logs.push_back(std::log(time.measured / time.predicted));
      distances.push_back(std::abs(logs.back()));
    }
    if (logs.empty()) continue;
    ++bands;
    judgement.distance += median(distances);
    const double off = median(logs);
    const double by_accuracy = std::abs(off) / std::log(band.accuracy);
    if (by_accuracy <= furthest) continue;
    furthest = by_accuracy;
    judgement.band = &band;
    judgement.factor = std::exp(off);
  }
  judgement.distance /= static_cast<double>(std::max<std::size_t>(bands, 1));
  if (furthest > 1) judgement.kind = judgement.factor > 1 ? Judgement::Kind::slower : Judgement::Kind::faster;
  if (judgement.kind == Judgement::Kind::as_predicted) judgement.odd = find_odd(times);
  return judgement;
}

std::vector<PredictedTime> predicted_times(const ResultsComparison& comparison) {
  std::vector<PredictedTime> times;
  for (const ComparedSize& row : comparison.sizes) {
    if (row.a > 0 && row.b > 0) times.push_back({row.size, row.a, row.b});
  }
  return times;
}

}  // namespace espalier::compare
