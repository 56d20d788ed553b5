#pragma once

// Tested by: tests/unit/forecast/degrade_test.cpp

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "forecast/question.h"
#include "planners/damage/failures.h"
#include "schedule/timeline/run_report.h"

namespace espalier::forecast {

/// The fastest schedule that was found, at the size asked for.
struct Fastest {
  std::string planner;
  RunReport run;
  bool kept = false;         ///< On a damaged machine: a schedule of the healthy one that does not use what failed.
  bool is_repaired = false;  ///< repairs_of: its time is of loads and latencies.
};

/// What a collective can reach on a machine.
struct Outlook {
  Collective collective;
  Bound bound;
  std::optional<Fastest> fastest;  ///< Absent when only bounds were asked for.
  std::optional<RunReport> nccl;   ///< Under a profile: what NCCL gives, where it has anything for the collective.
  std::string nccl_by = {};        ///< By which algorithm with which protocol: "nccl/ring/simple".

  /// The bound's busbw in bytes per second; nothing when nothing has to move.
  [[nodiscard]] std::optional<double> bound_busbw() const;
  /// The fastest schedule's busbw, or the bound's when there is none.
  [[nodiscard]] double busbw() const;
};

/// What one failure does.
struct Damage {
  planners::Failure failure;
  std::optional<Outlook> outlook;  ///< Absent when a rank cannot reach another any more.
  Error broken;                    ///< Then: which ranks.
  double bound_loss = 0;           ///< The part of the healthy machine's bound that is lost; 1 when it is broken.
  double loss = 0;                 ///< The part of the healthy machine's busbw that is lost; 1 when it is broken.
};

struct Degradation {
  Outlook healthy;
  std::vector<Damage> damages;  ///< Largest loss first, then largest loss of the bound, then in order of the topology.
};

struct DegradeOptions {
  bool ranks = false;    ///< Ranks fail too; a collective's root never does.
  unsigned threads = 1;  ///< So many failures at once; what is found does not depend on it.
};

/// Tells how far it is: what is looked at now, how many were before it, how many there are. Called one at a time.
using OnFailure = std::function<void(const std::string& what, std::size_t done, std::size_t total)>;

/// Every single failure of a question's machine, equal ones once: the bound that is left and the best schedule at its
/// first size, as `plan` has it for what is left; bounds alone where it names no algorithm. A schedule of the healthy
/// machine that does not use what failed takes part, so a failure that the fastest one does not meet costs nothing and
/// is not planned for.
/// With a traffic matrix every failure is looked at by itself, as no symmetry of the machine need be one of its
/// traffic. Errors: unsupported for unequal shards, and for ranks that fail with a traffic matrix; those of the bound
/// and of all planners on the healthy machine; those of runs. Cost: one bound, and one plan by each planner, per
/// failure that is not like another one.
Result<Degradation> degrade(const Question& question, const DegradeOptions& options = {},
                            const OnFailure& on_failure = {});

}  // namespace espalier::forecast
