#pragma once

// Tested by: tests/unit/sim/link/lone_runs_test.cpp

#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/compiled/compiled_schedule.h"
#include "sim/limits.h"
#include "sim/model.h"

namespace espalier::sim {

/// What a run does whose ranks enter so long after the first of them, while nobody else is on its resources, from
/// that one's moment on.
struct LoneRun {
  struct Use {
    std::uint32_t resource = 0;
    LinkUse use;
  };
  std::vector<std::pair<std::int64_t, Rank>> ends;  ///< When ranks are through, earliest first.
  std::vector<Use> uses;
  std::uint64_t events = 0;

  [[nodiscard]] std::int64_t duration() const { return ends.empty() ? 0 : ends.back().first; }
};

/// Runs that are not simulated, as what they do is known (LoneRun), and who is on which resources. A run is put aside
/// when it is added; it stays there while its ranks have entered at one moment, or none can be through before all have
/// entered, and nobody else comes to its resources before it is over. Else its model takes it back (`take_back`) and
/// simulates it from its beginning.
class LoneRuns {
 public:
  /// All of a network's.
  explicit LoneRuns(std::size_t resources) : users_(resources, 0), holders_(resources) {}

  /// A run that is put aside.
  struct Aside {
    const CompiledSchedule* compiled = nullptr;
    const LoneRun* known = nullptr;                      ///< Once all ranks have entered.
    std::int64_t entry = -1;                             ///< Of the first of its ranks.
    std::vector<std::pair<Rank, std::int64_t>> entered;  ///< In their order, and so long after the first.
    bool waits = false;                                  ///< No rank is through before all have entered.
    std::size_t ended = 0;                               ///< So many of `known->ends` have been told.

    [[nodiscard]] std::int64_t end() const { return known != nullptr ? entry + known->duration() : never; }
  };

  /// `waits`: no rank can be through before all have entered.
  void put_aside(RunId run, const CompiledSchedule& compiled, bool waits);
  /// Null: it is simulated, or over.
  [[nodiscard]] Aside* find(RunId run) {
    const auto found = asides_.find(run);
    return found == asides_.end() ? nullptr : &found->second;
  }
  /// It is simulated from now on, and on its resources until `leave`. Gives what was known of it.
  Aside take_back(RunId run);
  /// A run that is simulated, whose ranks begin to enter, or that is over.
  void come(const CompiledSchedule& compiled);
  void leave(const CompiledSchedule& compiled);

  /// A run that is put aside, on whose resources nobody is, holds them.
  void hold(RunId run, const CompiledSchedule& compiled, std::int64_t entry);
  /// All ranks have entered.
  void know(RunId run, const LoneRun& known);
  /// Whether somebody who is simulated is on these resources.
  [[nodiscard]] bool are_used(const CompiledSchedule& compiled);
  /// Those that are put aside and hold one of these resources past this moment.
  [[nodiscard]] std::vector<RunId> holders_past(const CompiledSchedule& compiled, std::int64_t time);

  /// The runs whose ranks have not all entered and that do not wait for them, at the moment when these do.
  [[nodiscard]] std::int64_t next_entry() const;
  [[nodiscard]] std::vector<RunId> entering_by(std::int64_t time) const;
  /// When the next rank of a run that is put aside is through; `never`: none is.
  [[nodiscard]] std::int64_t next_end();
  /// Those that are then, and the runs that are over with them.
  void take_ends(std::int64_t time, std::vector<RankEnd>& ended, std::vector<RunId>& over);

  /// Of all that were put aside and are over.
  void add_uses(std::vector<LinkUse>& links) const;
  [[nodiscard]] std::uint64_t events() const { return events_; }

  /// The resources that a run is on.
  const std::vector<std::uint32_t>& resources_of(const CompiledSchedule& compiled);

 private:
  struct End {
    std::int64_t time = 0;
    RunId run;
    auto operator<=>(const End&) const = default;
  };

  std::map<RunId, Aside> asides_;
  std::vector<RunId> entering_;
  std::vector<std::uint32_t> users_;  ///< By resource: runs that are simulated.
  std::vector<RunId> holders_;        ///< By resource: the run that is put aside.
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::map<const CompiledSchedule*, std::vector<std::uint32_t>> resources_;
  std::map<const LoneRun*, std::uint64_t> over_;  ///< How often.
  std::uint64_t events_ = 0;
};

}  // namespace espalier::sim
