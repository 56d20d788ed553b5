#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>

#include "report/plan_report.h"

namespace espalier::report {

/// What every rank sends to every rank, by a traffic matrix: an SVG of a square per two ranks, the darker the more
/// bytes, senders from top to bottom; of many ranks a square stands for some neighbours. Every square has its bytes as
/// a tooltip. Empty where blocks are equal.
std::string traffic_map(const PlanReport& report);

/// The ranks that send or receive the most: what a map's rows and columns add up to.
ReportTable traffic_table(const PlanReport& report);

}  // namespace espalier::report
