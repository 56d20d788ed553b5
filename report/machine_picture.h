#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// The nodes of the smaller side of the cut that proves the bound; none without a cut.
std::vector<NodeId> smaller_side(const PlanReport& report);

/// The network, its lines by the load of the run, one side of the cut outlined, as an SVG that needs nothing else.
std::string machine_picture(const PlanReport& report);

}  // namespace espalier::report
