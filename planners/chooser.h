#pragma once

// Tested by: tests/unit/planners/chooser_test.cpp

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planners/chunking.h"
#include "planners/pacing_search.h"
#include "planners/planner.h"
#include "schedule/symmetry/symmetry.h"
#include "schedule/timeline/run_report.h"
#include "schedule/trees/ring_walk.h"

namespace espalier::planners {

struct SymmetricPlan;
struct RepairedPlan;
struct LostParts;

/// A schedule of the collective, planned once and kept for all message sizes.
struct Candidate {
  std::string
      planner;  ///< The planner's name; of a variant, with what makes it one: "packing/h2t3": height 2, 3 trees a root.
  Schedule schedule;  ///< Without transfers where the rings below are walked, one rank's part of a symmetric plan.
  ChunkModel chunks;
  std::vector<RingWalk> walks = {};
  std::shared_ptr<const SymmetricPlan> symmetric = nullptr;
  /// Where the network has lost parts: `symmetric` on the network before, and what is done in its place.
  std::shared_ptr<const RepairedPlan> repaired = nullptr;
  /// Of a stored schedule of many transfers, in the same order, where there is one.
  std::shared_ptr<const ScheduleSymmetry> symmetry = nullptr;
  /// Whether `verify` passed the schedule on its topology, as of all that planners make; else whoever runs it asks.
  bool is_verified = false;

  /// Of the whole plan.
  [[nodiscard]] const Collective& collective() const;
  [[nodiscard]] std::uint64_t transfer_count() const;
  /// Whether `schedule` is all of it.
  [[nodiscard]] bool is_stored() const { return walks.empty() && symmetric == nullptr; }
};

/// Errors: invalid_input with the first breach, where a candidate's schedule is not verified yet and breaks a rule.
/// Plans that are not stored come from planners alone, which verify them.
Result<void> require_verified(const Candidate& candidate, const Topology& topology);

/// A planner that made nothing here, and why.
struct Refusal {
  std::string planner;
  Error error;
};

/// What planners make of one collective on one topology.
struct Candidates {
  std::vector<Candidate> made;  ///< In the order of the planners.
  std::vector<Refusal> refused;
  Bound bound;
  std::shared_ptr<const AllReduceProgram> solution;  ///< Of the bound, as in PlanContext.

  /// The candidate of this planner, or nullptr.
  [[nodiscard]] const Candidate* find(std::string_view planner) const;
};

/// What candidates are for, and what planning may use.
struct CandidateOptions {
  /// They are there to be chosen from: packings of lower and of fewer trees are candidates of their own
  /// (pareto_packings), and who cannot win at any size (may_win) is left out.
  bool for_choice = false;
  Bytes min_size{0};               ///< Nothing is chosen for smaller messages.
  std::vector<std::string> named;  ///< Planners that are not left out.
  /// Whether plans of large machines may be such as are not stored as a schedule (Candidate::is_stored).
  bool may_be_unstored = false;
  /// What the topology has lost; null: nothing, or it does not matter. Plans that are not stored begin with the machine
  /// before. Its topology must outlive the candidates.
  const LostParts* lost = nullptr;
  Paths paths = Paths::any;  ///< That plans may take; the bound counts every path. For make_candidates.
  unsigned threads = 1;      ///< So many planners at once; what they make does not depend on it.
  PlanContext context;       ///< Handed to the bound and to every planner; its listener is called from any thread.
};

/// Plans, verifies and bounds with each planner. `on_start` is told the planner's name before it starts, one at a time.
/// Errors: infeasible or invalid_input when the bound itself has no answer; a planner's refusal is not an error.
Result<Candidates> make_candidates(const BundledNetwork& network, const Collective& collective,
                                   std::span<const Planner> planners, const CandidateOptions& options = {},
                                   const std::function<void(std::string_view)>& on_start = {});

/// What one planner makes, verified and with this bound set: its schedule, after its variants where asked for.
/// Errors: those of the planner.
Result<std::vector<Candidate>> make_candidates_by(const Planner& planner, const BundledNetwork& network,
                                                  const Collective& collective, const Bound& bound,
                                                  const CandidateOptions& options = {});

/// Whether a candidate may gain more than half a percent at this size over what needs less work to plan: not lp where
/// packing's loads are at the bound, or pairwise's of an all_to_all on many ranks, nor a low packing where latency is
/// next to nothing.
bool may_win(const Candidates& candidates, const Candidate& candidate, Bytes size);

/// What is known of a candidate's runs before it runs.
struct RunCosts {
  const ChunkModel* chunks = nullptr;
  FixedPacing fixed;

  /// A time that no run is below, in seconds.
  [[nodiscard]] double min_time(Bytes size) const;
  /// About what the best cut takes, in seconds.
  [[nodiscard]] double pipelined_time(Bytes size) const;
};

/// Who is so close to a time that cannot be beaten is not beaten by more than half a percent.
inline constexpr double good_enough = 1.005;

/// Why a candidate has no run.
enum class NoRun : std::uint8_t {
  cannot_win,     ///< Its least time is longer than the run of the one chosen.
  is_near_bound,  ///< The one chosen is within half a percent of the bound, and so of this one at best.
  gains_little,   ///< Loads leave it less than a hundredth to gain (may_win).
  given_up,       ///< Its first cut took more than twice the time of the best (latest_beside); no other was tried.
  unsupported,    ///< The simulator has no model of it here.
};

/// For people: "not run: it cannot win".
std::string_view describe(NoRun reason);

/// What was found for one candidate.
struct Trial {
  const Candidate* candidate = nullptr;
  tl::expected<RunReport, NoRun> run = tl::unexpected(NoRun::unsupported);
  double min_time = 0;  ///< Seconds that it needs at least; of one that was given up, that its first cut needs.
};

/// Runs candidates to choose among them: on links alone (LinkTimes), or as software would (forecast/profiled_runs.h).
class CandidateTimes {
 public:
  CandidateTimes() = default;
  CandidateTimes(const CandidateTimes&) = delete;
  CandidateTimes& operator=(const CandidateTimes&) = delete;
  virtual ~CandidateTimes() = default;

  /// Whether it may be chosen at all.
  [[nodiscard]] virtual bool competes(const Candidate&) const { return true; }
  /// As planners::may_win, where loads and latencies of links decide.
  [[nodiscard]] virtual bool may_gain(const Candidate& candidate, Bytes size) const = 0;
  /// Seconds that no run of it is below, known without much work.
  virtual double floor(const Candidate& candidate, Bytes size) = 0;
  /// The same from all that is known before it runs. Errors: unsupported where it has no model of the candidate.
  virtual Result<double> min_time(const Candidate& candidate, Bytes size) = 0;
  /// In the order of this they run: about what it takes, in seconds. Requires: min_time gave a time.
  virtual double expected_time(const Candidate& candidate, Bytes size) = 0;
  /// Runs a candidate, cut as suits it beside others of which the best so far takes so long: gives the trial its run,
  /// or why there is none and what it takes at least. Errors: as the simulator; unsupported as min_time.
  virtual Result<void> run(Trial& trial, Bytes size, const std::optional<Picoseconds>& best) = 0;
};

struct Choice {
  const Candidate* candidate = nullptr;
  RunReport run;
  std::string why;            ///< One sentence: what it beats, and by how much.
  std::vector<Trial> trials;  ///< All candidates, the chosen one first; those that were not run come last.
};

/// The candidate that is fastest at this size; of equals the one with the least latency, and of these the one
/// whose planner comes first. Once one is within half a percent of the bound, no other is run; one that turns out to
/// take far longer than another is given up (NoRun): so the one chosen is the fastest of those that ran, and of the
/// others to within what their reasons say.
/// Requires: at least one candidate that competes. Errors: those of `times`; unsupported only where none can be run.
Result<Choice> choose(const Candidates& candidates, Bytes size, CandidateTimes& times);

/// Times of links alone: each candidate is cut as runs fastest (find_best_pacing), within what is fixed.
class LinkTimes : public CandidateTimes {
 public:
  /// The candidates must outlive it.
  explicit LinkTimes(const Candidates& candidates) : candidates_(candidates) {}

  /// How long one takes at a size when it is cut so; nothing where it takes longer than the deadline.
  virtual Result<std::optional<RunReport>> evaluate(const Candidate& candidate, Bytes size, const Pacing& pacing,
                                                    Picoseconds deadline) = 0;
  /// What of its cut is given.
  [[nodiscard]] virtual FixedPacing fixed(const Candidate& /*candidate*/, Bytes /*size*/) const { return {}; }

  [[nodiscard]] bool may_gain(const Candidate& candidate, Bytes size) const override {
    return may_win(candidates_, candidate, size);
  }
  double floor(const Candidate& candidate, Bytes size) override;
  Result<double> min_time(const Candidate& candidate, Bytes size) override { return floor(candidate, size); }
  double expected_time(const Candidate& candidate, Bytes size) override { return floor(candidate, size); }
  Result<void> run(Trial& trial, Bytes size, const std::optional<Picoseconds>& best) override;

 private:
  [[nodiscard]] RunCosts costs_of(const Candidate& candidate, Bytes size) const {
    return {&candidate.chunks, fixed(candidate, size)};
  }

  const Candidates& candidates_;
};

}  // namespace espalier::planners
