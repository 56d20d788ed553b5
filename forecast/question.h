#pragma once

// Tested by: tests/property/planners/matrix_test.cpp

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forecast/software.h"
#include "planners/chooser.h"
#include "planners/packing/pruned_packing.h"
#include "profile/costed_network.h"
#include "profile/nccl_choices.h"
#include "schedule/collective.h"
#include "sim/simulate.h"
#include "topology/topology.h"

namespace espalier::forecast {

/// How runs are made, whatever their size.
struct RunOptions {
  std::int64_t element_size = 4;
  planners::FixedPacing pacing;  ///< Fixed for all; the rest is chosen per schedule and size.
  sim::ModelKind model = sim::ModelKind::link;
  sim::Circumstances circumstances;
  std::shared_ptr<const Software> profile = nullptr;  ///< Null: links alone.
  std::function<void()> on_run = {};  ///< Told before each run on links alone, by the thread that runs it.
  std::shared_ptr<profile::KnownCommunicators> communicators = nullptr;  ///< Of many damaged machines; may be null.

  /// Of one run, with the costs of a setting where it runs in one; nothing is recorded.
  [[nodiscard]] sim::Options at(Bytes size, const Pacing& pacing,
                                const profile::CostedNetwork* setting = nullptr) const;
  /// What ranks and protocol add to such a run.
  [[nodiscard]] const sim::Endpoints& endpoints(const profile::CostedNetwork* setting) const {
    return setting != nullptr ? setting->endpoints : circumstances.endpoints;
  }
};

/// In which forms plans may be there.
enum class PlanForms : std::uint8_t {
  schedules,  ///< Stored as a schedule: to be written, executed or run on other paths.
  parts,      ///< Of large machines one rank's part may stand for all.
  any,        ///< Rings may be walked as well (forecast/walked_ring.h).
};

/// How a collective runs on a machine: what is asked.
struct Question {
  const Topology* machine = nullptr;
  Collective collective;
  std::vector<std::string> algorithms = {"auto"};  ///< Planners, "packing/h2t1", with a profile NCCL's; "auto".
  std::vector<Bytes> sizes = {};                   ///< None: any.
  RunOptions how = {};
  PlanForms forms = PlanForms::any;
  const planners::LostParts* lost = nullptr;            ///< As CandidateOptions::lost.
  planners::PackingLimits packing = {};                 ///< Of packing's trees.
  const planners::TreeMemory* known = nullptr;          ///< As PlanContext::known.
  std::optional<planners::Paths> paths = std::nullopt;  ///< That plans may take; empty: the software's.
  unsigned threads = 1;                                 ///< As CandidateOptions::threads.
  std::vector<std::string> left_out = {};               ///< Planners that "auto" does without.
};

/// Told how far planning is, from any thread, one at a time; may be empty.
struct PlanListener {
  std::function<void(std::string_view planner)> on_start = {};
  planners::OnRound on_round = {};
};

/// "nccl" or one of NCCL's algorithms, "nccl/ring": they need a profile.
bool is_nccl_algorithm(std::string_view name);

/// "packing/h2t1": a packing of a depth and a number of trees.
bool is_packing_variant(std::string_view name);

/// The planners that these algorithms need: those named, or all when "auto" is among them.
std::vector<planners::Planner> planners_for(const std::vector<std::string>& algorithms, const Collective& collective);

/// What the planners of a question make, at least one candidate each or a refusal. With "auto" variants of the packing
/// take part, unless it is limited, and those that are named; one that is not found is refused with those that are
/// there. Errors: those of make_candidates; unsupported for limits where packing is not asked for or has none within.
Result<planners::Candidates> plan(const Question& question, const PlanListener& listener = {});

}  // namespace espalier::forecast
