#include "planners/rank_limit.h"

#include <string>

#include "schedule/schedule.h"

namespace espalier::planners {

Result<void> check_rank_limit(const Collective& collective) {
  if (collective.rank_count <= max_ranks) return {};
  return fail(ErrorCode::too_large,
              std::to_string(collective.rank_count) + " ranks are more than a plan may have (" +
                  std::to_string(max_ranks) + ")",
              "name a part of the machine with --ranks, or a smaller one; bound takes more");
}

}  // namespace espalier::planners
