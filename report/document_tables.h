#pragma once

// Tested by: tests/unit/report/results_page_test.cpp

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/plan_report.h"

namespace espalier::report {

/// Reads a document that --json of any verb prints: an object whose "schema" begins with "espalier/". `name` stands for
/// the file in messages. Errors: invalid_input with file:line:column or file:1:1; too_large for one nested too deeply.
Result<nlohmann::ordered_json> read_document(std::string_view text, std::string_view name);

/// All that a document says, as tables: its single values first, then one per list of objects, whose inner objects give
/// columns of their own ("from.size"). Captions begin with `name`.
/// Cost: linear in the document; a table has at most `max_document_rows`, and its caption says so.
std::vector<ReportTable> tables_of(const nlohmann::ordered_json& document, std::string_view name);

inline constexpr std::size_t max_document_rows = 5'000;

}  // namespace espalier::report
