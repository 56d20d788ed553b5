#pragma once

#include <string>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// The first thing to know, as sentences: what is fastest, how near to the bound it comes, what proves the bound.
std::vector<std::string> verdict_of(const PlanReport& report);

}  // namespace espalier::report
