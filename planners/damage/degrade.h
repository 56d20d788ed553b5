#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planners/chooser.h"
#include "planners/damage/failures.h"
#include "planners/planner.h"
#include "schedule/chunking.h"
#include "schedule/timeline/run_report.h"

namespace espalier::planners {

/// The fastest schedule that was found, at the size asked for.
struct Fastest {
  std::string planner;
  RunReport run;
  bool kept = false;         ///< On a damaged machine: a schedule of the healthy one that does not use what failed.
  bool is_repaired = false;  ///< As Candidate::repaired: its time is of loads and latencies.
};

/// What a collective can reach on a machine.
struct Outlook {
  Collective collective;
  Bound bound;
  std::optional<Fastest> fastest;  ///< Absent when only bounds were asked for.

  /// The bound's busbw in bytes per second; nothing when nothing has to move.
  [[nodiscard]] std::optional<double> bound_busbw() const;
  /// The fastest schedule's busbw, or the bound's when there is none.
  [[nodiscard]] double busbw() const;
};

/// What one failure does.
struct Damage {
  Failure failure;
  std::optional<Outlook> outlook;  ///< Absent when a rank cannot reach another any more.
  Error broken;                    ///< Then: which ranks.
  double bound_loss = 0;           ///< The part of the healthy machine's bound that is lost; 1 when it is broken.
  double loss = 0;                 ///< The part of the healthy machine's busbw that is lost; 1 when it is broken.
};

struct Degradation {
  Outlook healthy;
  std::vector<Damage> damages;  ///< Largest loss first, then largest loss of the bound, then in order of the topology.
};

/// Chooses among what was planned for a topology: `choose` with the simulator, which is made ready once for all cuts.
using ChooseOn = std::function<Result<Choice>(const Topology&, const Candidates&, Bytes size)>;

struct DegradeOptions {
  Bytes size;
  std::span<const Planner> planners;  ///< Those that may plan; none of them for bounds only.
  bool ranks = false;                 ///< Ranks fail too; a collective's root never does.
  bool from_scratch = false;          ///< Plans every damaged machine anew, without the healthy machine's trees.
  Paths paths = Paths::any;           ///< As CandidateOptions.
  bool may_be_unstored = false;       ///< As CandidateOptions; `choose_on` then gets such candidates, too.
  unsigned threads =
      1;  ///< So many failures at once, `choose_on` from any of them; what is found does not depend on it.
};

/// Tells how far it is: what is looked at now, how many were before it, how many there are. Called one at a time.
using OnFailure = std::function<void(const std::string& what, std::size_t done, std::size_t total)>;

/// Every single failure of a topology, equal ones once: the bound that is left and the best schedule. A schedule of the
/// healthy machine that does not use what failed takes part, so a failure that the fastest one does not meet costs
/// nothing and is not planned for.
/// Errors: unsupported for unequal shards; those of the bound and of all planners on the healthy machine; those of
/// `choose_on`. Cost: one bound, and one plan by each planner, per failure that is not like another one.
Result<Degradation> degrade(const Topology& topology, const Collective& collective, const DegradeOptions& options,
                            const ChooseOn& choose_on, const OnFailure& on_failure = {});

}  // namespace espalier::planners
