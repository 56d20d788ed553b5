#pragma once

// Tested by: tests/unit/compare/read/rank_timelines_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// Whose clock a timeline is of: the machine's, by its boot, and what that and the time of day said at time 0.
struct TimelineClock {
  std::string boot;
  std::int64_t first_ns = 0;
  std::int64_t first_real_ns = 0;
};

/// What the profiler plug-in writes beside a timeline; nothing for other texts. Source: docs/nccl-plugins.md.
std::optional<TimelineClock> read_timeline_clock(std::string_view text);

/// What one rank saw.
struct RankTimeline {
  std::string file;
  Timeline timeline;
  std::optional<TimelineClock> clock;
};

/// One timeline of those of several ranks, on the clock of the first. Ranks of one boot share a clock. Those of others
/// begin at their time of day, and are shifted so that the fastest messages either way take as long, where there are
/// messages both ways. Errors: invalid_input for a file without a clock, other ranks or title, or a rank twice.
Result<Timeline> merge_rank_timelines(const std::vector<RankTimeline>& parts);

}  // namespace espalier::compare
