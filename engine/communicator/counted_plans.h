#pragma once

// Tested by: tests/unit/engine/communicator/counted_plans_test.cpp

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/communicator/group.h"

namespace espalier::engine {

/// Of more ranks a call is by direct messages: telling all counts is then megabytes for each.
inline constexpr std::size_t max_counted_ranks = 512;

/// Schedules for all_to_alls with counts per peer: the members tell each other all counts, and ask for the schedule of
/// the matrix that these are.
class CountedPlans {
 public:
  /// `members` must outlive it.
  CountedPlans(std::shared_ptr<Job> job, Group& members, ScheduleSource schedules)
      : job_(std::move(job)), members_(members), schedules_(std::move(schedules)) {}
  ~CountedPlans();
  CountedPlans(const CountedPlans&) = delete;
  CountedPlans& operator=(const CountedPlans&) = delete;

  /// Runs a call of the members.
  using RunCall = std::function<Result<void>(Group&, const CallArguments&)>;

  /// The call that does the same by a schedule, of `group()`; nothing for direct messages. It uses this object's
  /// memory. All members come to the same. Errors: those of telling the counts, of the source and of making the group.
  Result<std::optional<CallArguments>> plan(const CallArguments& arguments, const RunCall& run);
  /// Once `plan` gave a call.
  [[nodiscard]] Group& group() { return *group_; }

 private:
  Result<void> tell(const CallArguments& arguments, const RunCall& run);
  /// Whether all counts match and all blocks lie in order; `matrix_` is then that of all counts, row by row.
  bool read_matrix();
  /// S, in elements.
  [[nodiscard]] std::int64_t most_of_a_rank() const;

  std::shared_ptr<Job> job_;
  Group& members_;
  ScheduleSource schedules_;
  std::unique_ptr<Group> group_;  ///< Of the same members, for calls by schedules. Made at the first.
  std::int64_t* told_ = nullptr;  ///< What this rank tells, and behind it what all tell.
  std::vector<std::int64_t> matrix_;
};

}  // namespace espalier::engine
