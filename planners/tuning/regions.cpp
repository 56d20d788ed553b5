#include "planners/tuning/regions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"

namespace espalier::planners {
namespace {

const Trial* find_trial(const Choice& choice, const Candidate* candidate) {
  const auto found = std::ranges::find(choice.trials, candidate, &Trial::candidate);
  return found == choice.trials.end() ? nullptr : &*found;
}

/// Whether a candidate is as good as the fastest one at a size.
bool keeps_up(const TunedSize& point, const Candidate* candidate, double tolerance) {
  const Trial* trial = find_trial(point.choice, candidate);
  if (trial == nullptr || !trial->run) return false;
  const auto fastest = static_cast<double>(point.choice.run.elapsed.count);
  return static_cast<double>(trial->run->elapsed.count) <= fastest * (1 + tolerance);
}

/// Those that keep up at a size.
std::vector<const Candidate*> leaders(const TunedSize& point, double tolerance) {
  std::vector<const Candidate*> found;
  for (const Trial& trial : point.choice.trials) {
    if (keeps_up(point, trial.candidate, tolerance)) found.push_back(trial.candidate);
  }
  return found;
}

/// Of several, the one whose times at these sizes are least, each as a part of the best time there.
const Candidate* best_of(const std::vector<const Candidate*>& several, std::span<const TunedSize> points) {
  const Candidate* best = nullptr;
  double least = 0;
  for (const Candidate* candidate : several) {
    double loss = 0;
    for (const TunedSize& point : points) {
      const auto fastest = static_cast<double>(point.choice.run.elapsed.count);
      const auto own = static_cast<double>(find_trial(point.choice, candidate)->run->elapsed.count);
      loss += fastest > 0 ? own / fastest - 1 : 0;
    }
    if (best == nullptr || loss < least) std::tie(best, least) = std::pair(candidate, loss);
  }
  return best;
}

/// From the smallest size on, a region goes as far as some candidate keeps up; the best of those is taken in all of it.
void take_candidates(std::vector<TunedSize>& points, double tolerance) {
  for (std::size_t begin = 0; begin < points.size();) {
    std::vector<const Candidate*> several = leaders(points[begin], tolerance);
    std::size_t end = begin + 1;
    for (; end < points.size(); ++end) {
      std::vector<const Candidate*> left = several;
      std::erase_if(left, [&](const Candidate* each) { return !keeps_up(points[end], each, tolerance); });
      if (left.empty()) break;
      several = std::move(left);
    }
    const std::span region = std::span(points).subspan(begin, end - begin);
    const Candidate* taken = best_of(several, region);
    for (TunedSize& point : region) point.taken = taken;
    begin = end;
  }
}

/// The size between two others by which the first and the second differ as much; nothing when they are close enough.
std::optional<Bytes> middle(Bytes below, Bytes above, const RegionOptions& options) {
  if (static_cast<double>(above.count) <= options.resolution * static_cast<double>(below.count)) return std::nullopt;
  const double mean = std::sqrt(static_cast<double>(below.count) * static_cast<double>(above.count));
  const Bytes size{static_cast<std::int64_t>(mean) / options.element_size * options.element_size};
  return size > below && size < above ? std::optional(size) : std::nullopt;
}

/// Of each gap in which the winner changes and that can be narrowed, the size to look at there.
std::vector<Bytes> next_sizes(const std::vector<TunedSize>& points, const RegionOptions& options) {
  std::vector<Bytes> sizes;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].taken == points[i - 1].taken) continue;
    if (const auto size = middle(points[i - 1].size, points[i].size, options)) sizes.push_back(*size);
  }
  return sizes;
}

}  // namespace

const RunReport& TunedSize::run() const {
  const Trial* trial = find_trial(choice, taken);
  ESPALIER_CHECK(trial != nullptr && trial->run.has_value(), "the candidate taken was run");
  return *trial->run;
}

Margin margin_of(const TunedSize& point) {
  Margin margin;
  const double seconds = point.run().elapsed.seconds();
  for (const Trial& trial : point.choice.trials) {
    if (trial.candidate == point.taken) continue;
    const double other = trial.run ? trial.run->elapsed.seconds() : trial.min_time;
    // Who is ahead by less than the tolerance is as good, and who has next to nothing to gain.
    const bool is_slower =
        !trial.run && (trial.run.error() == NoRun::cannot_win || trial.run.error() == NoRun::given_up);
    return {trial.candidate, seconds > 0 ? std::max(other / seconds, 1.0) : 1, is_slower};
  }
  return margin;
}

Result<std::vector<Region>> find_regions(const Candidates& candidates, std::span<const Bytes> sizes,
                                         const RegionOptions& options, CandidateTimes& times,
                                         const std::function<void(Bytes)>& on_size) {
  std::vector<TunedSize> points;
  const auto look_at = [&](std::span<const Bytes> several) -> Result<void> {
    std::vector<std::optional<Result<Choice>>> choices(several.size());
    run_parallel(several.size(), options.threads, [&](std::size_t i) {
      const std::size_t place = several.size() - 1 - i;  // The largest take longest and come first.
      if (on_size) on_size(several[place]);
      choices[place] = choose(candidates, several[place], times);
    });
    for (std::size_t i = 0; i < several.size(); ++i) {
      if (!*choices[i]) return tl::unexpected(choices[i]->error());
      const auto place = std::ranges::lower_bound(points, several[i], {}, &TunedSize::size);
      points.insert(place, {several[i], std::move(**choices[i]), nullptr});
    }
    take_candidates(points, options.tolerance);
    return {};
  };
  std::vector<Bytes> next(sizes.begin(), sizes.end());
  while (!next.empty()) {
    if (auto looked = look_at(next); !looked) return tl::unexpected(looked.error());
    next = next_sizes(points, options);
  }
  std::vector<Region> regions;
  for (TunedSize& point : points) {
    if (regions.empty() || regions.back().taken != point.taken) regions.push_back({point.taken, {}});
    regions.back().sizes.push_back(std::move(point));
  }
  return regions;
}

}  // namespace espalier::planners
