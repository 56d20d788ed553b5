#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// The beginning of a page: head, heading, links to its parts (id and name), up to the opened main element.
std::string page_head(const std::string& title, const std::vector<std::pair<std::string, std::string>>& parts);

/// The end: what made it, the data for the script (may be empty), the script.
std::string page_foot(const std::string& maker, const std::string& data);

/// Sentences as a list of that class; nothing without any.
std::string sentence_list(const std::vector<std::string>& sentences, std::string_view name);

/// Tables one below the other.
std::string tables_html(const std::vector<ReportTable>& tables);

/// The place where the script draws a timeline. `looks` are classes and names for the legend.
std::string timeline_html(const std::vector<std::pair<std::string, std::string>>& looks);

}  // namespace espalier::report
