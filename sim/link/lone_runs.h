#pragma once

// Tested by: tests/unit/sim/link/lone_runs_test.cpp

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "sim/compiled/compiled_schedule.h"
#include "sim/limits.h"
#include "sim/link/lone_answers.h"
#include "sim/link/server.h"
#include "sim/model.h"

namespace espalier::sim {

/// Runs that need not be simulated, as what they do is known, and who is on which resources. A run is put aside when it
/// is added. When its ranks enter it joins the group of those on whose resources it comes, or begins one. A group's
/// ends are read from what is remembered of such a group (LoneAnswers). Where that ends, the model simulates the group
/// from its beginning (`watch`) and tells here what happens, so that the next one is known. A group that becomes large,
/// or meets a run that belongs to none, is simulated and watched no more (`give_up`).
class LoneRuns {
 public:
  LoneRuns(const Network& network, std::size_t resources)
      : answers_(network), users_(resources, 0), holders_(resources, no_group) {}

  using GroupId = std::uint64_t;
  static constexpr GroupId no_group = 0;

  struct Entry {
    RunId run;
    Rank rank;
    std::int64_t time = 0;
    std::int64_t now = 0;    ///< What the model had told of when it entered.
    std::uint64_t turn = 0;  ///< As LoneEntry::turn.
  };

  /// A run of a group, or before its first rank enters.
  struct Lone {
    LoneMember member;
    bool waits = false;       ///< No rank is through before all have entered.
    bool is_message = false;  ///< Between two ranks: nothing moves before both have entered.
    bool is_over = false;     ///< It was simulated, and is over.
    GroupId group = no_group;
    std::uint32_t slot = 0;  ///< In its group, in the order in which they join.
    std::uint32_t entered = 0;
    std::optional<Entry> early;  ///< Of a message: who waits for the other.

    [[nodiscard]] bool is_complete() const { return entered == member.compiled->schedule().collective.rank_count; }
  };

  /// What the model has to simulate from its beginning.
  struct Replay {
    std::vector<std::pair<RunId, const CompiledSchedule*>> runs;
    std::vector<Entry> entries;
    std::vector<std::pair<RunId, Rank>> told;  ///< Ends that are known.
  };

  /// `waits`: no rank can be through before all have entered.
  void put_aside(RunId run, const CompiledSchedule& compiled, const RunOptions& options, bool waits);
  /// Null: it belongs to no group and is simulated, or it is over.
  [[nodiscard]] const Lone* find(RunId run) const {
    const auto found = lones_.find(run);
    return found == lones_.end() ? nullptr : &found->second;
  }

  /// The groups on whose resources a run comes whose first rank enters. Nothing: it meets somebody who belongs to none.
  [[nodiscard]] std::optional<std::vector<GroupId>> groups_met(const CompiledSchedule& compiled, std::int64_t time,
                                                               const std::vector<Server>& servers);
  /// All that hold one of the resources past this time.
  [[nodiscard]] std::vector<GroupId> groups_past(const CompiledSchedule& compiled, std::int64_t time);
  /// Whether one more run and these groups are few enough.
  [[nodiscard]] bool may_join(const std::vector<GroupId>& groups) const;
  /// These groups and the run are one from `now` on. Whether it is simulated.
  bool join(RunId run, const std::vector<GroupId>& groups, std::int64_t now, Replay& replay);
  /// Requires: the run belongs to a group, or is a message whose first rank enters.
  void enter(const Entry& entry);
  /// A rank of a run that is simulated is through.
  void note_end(const RankEnd& end);
  /// A run that is simulated is over.
  void note_over(RunId run, const CompiledSchedule& compiled);

  /// A group that `take_ends` named is simulated from now on.
  [[nodiscard]] Replay watch(GroupId group) const;
  /// A run, and all of its group, belong to none from now on, and are simulated.
  Replay give_up(RunId run);
  Replay give_up_group(GroupId group);

  /// When the next rank of a group that is not simulated is through, or what it does has to be watched; `never`: none.
  [[nodiscard]] std::int64_t next_time();
  /// The ranks that are then, the runs that are over with them, and the groups that have to be watched.
  void take_ends(std::int64_t time, std::vector<RankEnd>& ended, std::vector<RunId>& over,
                 std::vector<GroupId>& unknown);

  /// Of all runs that were not simulated and are over.
  void add_uses(std::vector<LinkUse>& links) const;
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  /// Runs that meet each other.
  struct Group {
    std::vector<RunId> runs;  ///< By slot.
    std::vector<Entry> entries;
    bool is_simulated = false;
    std::shared_ptr<LoneAnswer> root;
    LoneAnswer* answer = nullptr;  ///< After the entries and members that were walked.
    std::size_t walked = 0;        ///< Of `entries`.
    std::size_t members = 0;       ///< Of `runs`, walked.
    std::size_t next_end = 0;      ///< Of the answer's; where it is not simulated.
    std::size_t ranks_left = 0;    ///< Whose ends were not told.
    std::vector<std::pair<RunId, Rank>> told;
    std::vector<RankEnd> noted;  ///< Where it is simulated: ends past the latest entry.
  };

  struct Wakeup {
    std::int64_t time = 0;
    GroupId group = no_group;
    auto operator<=>(const Wakeup&) const = default;
  };

  const std::vector<std::uint32_t>& resources_of(const CompiledSchedule& compiled);
  bool is_message(const CompiledSchedule& compiled);
  [[nodiscard]] static std::int64_t entry_of(const Group& group) { return group.entries.front().time; }
  [[nodiscard]] bool is_complete(const Group& group) const;
  void restart(Group& group);
  void walk(GroupId id);
  void begin_writing(GroupId id, Group& group);
  void write(const Group& group, const RankEnd& end);
  void end_writing(GroupId id, const Group& group, std::int64_t time);
  void forget_who_left(LoneAnswer& answer) const;
  void tell_readers(const Group& group);
  /// A writer is as far as those who read along, or farther.
  [[nodiscard]] bool reads_along(const Group& group) const;
  [[nodiscard]] bool knows_next(const Group& group) const;
  [[nodiscard]] std::int64_t next_of(const Group& group) const;
  [[nodiscard]] std::int64_t end_of(GroupId id);
  void add_to_replay(const Group& group, Replay& replay) const;
  void dissolve(GroupId id, std::vector<RunId>& over);

  LoneAnswers answers_;
  std::map<RunId, Lone> lones_;
  std::map<GroupId, Group> groups_;
  std::vector<GroupId> unwalked_;
  std::vector<std::uint32_t> users_;  ///< By resource: runs that belong to no group and are simulated.
  std::vector<GroupId> holders_;      ///< By resource.
  std::priority_queue<Wakeup, std::vector<Wakeup>, std::greater<>> wakeups_;
  std::map<const CompiledSchedule*, std::vector<std::uint32_t>> resources_;
  std::map<const CompiledSchedule*, bool> messages_;
  std::map<const LoneLoad*, std::uint64_t> over_;  ///< How often.
  std::uint64_t events_ = 0;
  GroupId latest_group_ = no_group;
};

}  // namespace espalier::sim
