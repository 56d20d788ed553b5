#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string_view>

namespace espalier::report {

/// bundle/report.css and bundle/report.js, as they stand in this folder.
std::string_view page_style();
std::string_view page_script();

}  // namespace espalier::report
