#pragma once

// Tested by: tests/unit/compare/judgement_test.cpp

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "compare/compare_results.h"

namespace espalier::compare {

/// Sizes up to 64 KiB, up to 64 MiB and above: where latency, pipelines and bandwidth decide.
struct SizeBand {
  std::string_view name;
  Bytes above, up_to;
  double accuracy;  ///< The factor within which nine in ten predictions of machines that no fit knew are.

  [[nodiscard]] bool has(Bytes size) const { return size > above && size <= up_to; }
};
/// Accuracies as docs/accuracy.md has them ("systems that a fit did not know"), the worst rows left out.
inline constexpr std::array size_bands = {
    SizeBand{"up to 64 KiB", {-1}, {std::int64_t{1} << 16}, 1.25},
    SizeBand{"64 KiB to 64 MiB", {std::int64_t{1} << 16}, {std::int64_t{1} << 26}, 1.3},
    SizeBand{"above 64 MiB", {std::int64_t{1} << 26}, max_message_size, 1.15}};

/// What one size was predicted to take, and what it took, in seconds.
struct PredictedTime {
  Bytes size;
  double predicted = 0;
  double measured = 0;
};

/// Whether a machine does what was predicted of it.
struct Judgement {
  enum class Kind : std::uint8_t { as_predicted, slower, faster };

  Kind kind = Kind::as_predicted;
  double factor = 1;                 ///< The median of measured over predicted in `band`.
  const SizeBand* band = nullptr;    ///< The one that parts most, by its accuracy.
  double distance = 0;               ///< The mean over the bands of the median of |log(measured / predicted)|.
  std::optional<PredictedTime> odd;  ///< As predicted but for this one size, which takes far longer.

  /// As a factor: what a typical time is off by.
  [[nodiscard]] double typical() const;
};

/// By the medians of three bands of sizes: one disturbed size makes no machine slow, but is told.
/// Requires: times above 0, at least one.
Judgement judge(std::span<const PredictedTime> times);

/// A as the prediction of B; rows that take no time are left out.
std::vector<PredictedTime> predicted_times(const ResultsComparison& comparison);

}  // namespace espalier::compare
