#include "compare/path_by_rank.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace espalier::compare {
namespace {

/// Who each span of a path waits for, by lane.
class WaitedFor {
 public:
  WaitedFor(const Timeline& timeline, const std::vector<ChainStep>& chain) : spans_(timeline.spans) {
    for (const ChainStep& step : chain) {
      const Span& span = spans_[step.span];
      if (span.phase == Phase::send) receives_.emplace(key(span), nullptr);
    }
    for (const Span& span : spans_) {
      if (span.phase != Phase::recv) continue;
      const auto wanted = receives_.find(key(span));
      if (wanted != receives_.end()) wanted->second = &span;
    }
  }

  /// Nothing for what is on a link.
  [[nodiscard]] std::optional<std::uint32_t> lane(SpanIndex index) const {
    const Span& span = spans_[index];
    if (span.phase == Phase::wire) return std::nullopt;
    if (span.phase != Phase::send) return span.lane;
    const auto found = receives_.find(key(span));
    const bool is_taken_later =
        found != receives_.end() && found->second != nullptr && found->second->begin > span.begin;
    return is_taken_later ? found->second->lane : span.lane;
  }

 private:
  static std::uint64_t key(const Span& span) {
    constexpr unsigned bits = 32;
    return static_cast<std::uint64_t>(span.transfer.index()) << bits | span.chunk;
  }

  std::span<const Span> spans_;
  std::unordered_map<std::uint64_t, const Span*> receives_;  ///< Of the chunks that the path sends.
};

}  // namespace

std::vector<Picoseconds> path_by_rank(const Timeline& timeline, const KnownSchedule& known) {
  std::vector<Picoseconds> times(timeline.rank_names.size());
  const std::vector<ChainStep> chain = find_critical_chain(timeline, known);
  const WaitedFor waited_for(timeline, chain);
  Picoseconds waited;
  for (const ChainStep& step : chain) {
    if (const auto lane = waited_for.lane(step.span)) {
      times[*lane] = times[*lane] + (step.until - step.begin) + waited;
    }
    waited = step.waited;
  }
  return times;
}

}  // namespace espalier::compare
