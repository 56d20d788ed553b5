#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// What a bound says beside what NCCL's NVLS reaches.
inline constexpr std::string_view nvls_note =
    "The bound counts links alone, with switches that add and copy at their full rate; NVLS reaches what its channels "
    "carry, which the profile counts.";

/// The first thing to know, as sentences: what is fastest, how near to the bound it comes, what proves the bound.
std::vector<std::string> verdict_of(const PlanReport& report);

}  // namespace espalier::report
