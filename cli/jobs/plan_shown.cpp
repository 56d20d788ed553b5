#include "cli/jobs/plan_shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/parallel.h"
#include "cli/output/progress.h"
#include "cli/reports/describe_bound.h"

namespace espalier::cli {
namespace {

/// "all_gather round 12: 24 columns, algbw 131.95 of at most 132.00 GB/s, gap 0.038 %".
std::string round_text(const planners::ProgramRound& round) {
  return fmt::format("{} round {}: {} columns, algbw {} of at most {} GB/s, gap {:.3f} %", round.program, round.round,
                     round.columns, gigabytes_per_second(round.reached), gigabytes_per_second(round.limit),
                     100 * std::max(0.0, round.gap()));
}

}  // namespace

Result<planners::Candidates> plan_shown(const Console& console, forecast::Question question, bool verbose) {
  question.threads = usable_threads();
  Progress progress(console, "planning", forecast::planners_for(question.algorithms, question.collective).size());
  forecast::PlanListener listener;
  listener.on_start = [&](std::string_view name) {
    if (verbose) console.note(fmt::format("planner {}", name));
    progress.step(std::string(name));
  };
  listener.on_round = [&](const planners::ProgramRound& round) {
    progress.describe("packing, " + round_text(round));
    if (verbose) console.note(round_text(round));
  };
  return forecast::plan(question, listener);
}

}  // namespace espalier::cli
