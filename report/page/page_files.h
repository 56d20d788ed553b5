#pragma once

#include <string_view>

namespace espalier::report {

/// report.css, and report.js with timeline.js behind it, as they stand in this folder.
std::string_view page_style();
std::string_view page_script();

}  // namespace espalier::report
