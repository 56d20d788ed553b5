#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <string_view>

#include "report/plan_report.h"

namespace espalier::report {

/// The text as it may stand between tags and in quoted attributes; control characters are left out.
std::string in_html(std::string_view text);

/// A message size for people, as short as it is exact or near enough: "1 GiB", "430.5 MiB".
std::string size_text(Bytes size);

/// A table with its caption, which the page's script makes sortable and downloadable.
std::string html_table(const ReportTable& table);

/// The bytes in base64. Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace espalier::report
