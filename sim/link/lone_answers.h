#pragma once

// Tested by: tests/unit/sim/link/lone_runs_test.cpp

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/compiled/compiled_schedule.h"
#include "sim/model.h"

namespace espalier::sim {

/// A run among those that meet each other and nobody else.
struct LoneMember {
  const CompiledSchedule* compiled = nullptr;
  RunOptions options;
};

/// A rank of a member takes part from `time` on, when everything up to `now` has happened. What entries of one turn
/// cause happens once all of them have entered, even if it is at once.
struct LoneEntry {
  std::uint32_t member = 0;
  Rank rank;
  std::int64_t time = 0;
  std::int64_t now = 0;
  std::uint64_t turn = 0;
};

/// A rank of a member is through.
struct LoneEnd {
  std::int64_t time = 0;
  std::uint32_t member = 0;
  Rank rank;
  auto operator<=>(const LoneEnd&) const = default;
};

/// What members do after the entries that lead here: who is through while nobody else enters, earliest first. Times are
/// from the first entry on.
struct LoneAnswer {
  static constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min();

  std::vector<LoneEnd> ends;
  std::int64_t horizon = nothing;  ///< Up to here these are all; `never`: they are.
  /// The group, if any, that is simulated and tells what happens; others read along, of which some may have left.
  std::uint64_t writer = 0;
  std::vector<std::uint64_t> readers;
  std::map<std::vector<std::int64_t>, std::unique_ptr<LoneAnswer>> next;
};

/// What a run carries, however its ranks enter and whomever it meets.
struct LoneLoad {
  struct Use {
    std::uint32_t resource = 0;
    LinkUse use;
  };
  std::vector<Use> uses;
  std::uint64_t events = 0;
};

/// What runs do that meet nobody but each other, remembered by what they are and when their ranks enter: in one of many
/// like boxes as in another. Requires: services that depend on differences of times only (LinkService::is_uniform).
class LoneAnswers {
 public:
  explicit LoneAnswers(const Network& network) : network_(network) {}

  /// Where nobody has entered. It lives while somebody holds it.
  [[nodiscard]] std::shared_ptr<LoneAnswer> root();
  /// What is known after these entries, too, or a place for it. `members`: of the group, in the order in which they
  /// joined it, the last ones, from `joined` on, since `from`; `places`: how many of the others before each were added
  /// before it. Cost: O(entries log answers).
  LoneAnswer& step(LoneAnswer& from, std::span<const LoneMember> members, std::size_t joined,
                   std::span<const std::size_t> places, std::vector<LoneEntry> entries);
  /// Of a run whose ranks all enter.
  const LoneLoad& load(const LoneMember& member);

 private:
  /// A schedule's resources, ascending, each with its number in the order in which the routes pass them.
  using Numbered = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  struct Form {
    std::uint32_t index = 0;  ///< The same for schedules that do the same on resources that are alike.
    Numbered resources;
  };
  /// How a schedule is cut.
  using Options = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int32_t, std::uint32_t>;

  static Options options_of(const LoneMember& member);
  const Form& form_of(const CompiledSchedule& compiled);
  std::uint32_t kind_of(const LoneMember& member);
  std::uint32_t overlap_of(const CompiledSchedule& one, const CompiledSchedule& other);

  const Network& network_;
  std::shared_ptr<LoneAnswer> root_;
  std::size_t size_ = 0;  ///< Of all steps, in numbers of eight bytes.
  std::map<const CompiledSchedule*, Form> forms_;
  std::map<std::vector<std::int64_t>, std::uint32_t> form_indices_;
  std::map<std::pair<std::uint32_t, Options>, std::uint32_t> kinds_;
  std::map<std::pair<const CompiledSchedule*, const CompiledSchedule*>, std::uint32_t> overlaps_;
  std::map<Numbered, std::uint32_t> overlap_indices_;  ///< By the numbers of the resources that both pass.
  std::map<std::pair<const CompiledSchedule*, Options>, LoneLoad> loads_;
};

}  // namespace espalier::sim
