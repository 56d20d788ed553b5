#pragma once

// Tested by: tests/unit/cli/pages/pages_test.cpp

#include <span>
#include <string>

#include "report/job_page.h"
#include "scenario/read/read_scenario.h"
#include "scenario/report/report.h"

namespace espalier::cli {

/// What a page shows of a scenario and of what came of it. `profile`: the one that counts, or empty. The scenario has
/// to outlive the page.
report::JobPage make_job_page(const scenario::Scenario& scenario, const scenario::JobReport& report,
                              const std::string& profile);

/// The name whose calls, of all kinds, are exposed for most of the time: "Most exposed: tensor (all_gather and
/// reduce_scatter), for 12.3 % of the time." Empty where nothing is.
std::string max_exposed(std::span<const scenario::CallSummary> calls);

}  // namespace espalier::cli
