#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/units.h"

namespace espalier::report {

/// A span as the page's script draws it.
struct PageSpan {
  Picoseconds begin, end;
  std::uint32_t lane = 0;
  std::uint32_t look = 0;   ///< Among those of the page.
  std::uint32_t label = 0;  ///< A transfer, or one of the page's labels.
  std::uint32_t chunk = 0;
};

/// Moments are counted in so many parts of a run, which takes four bytes at most and is finer than any screen.
inline constexpr std::int64_t time_steps = std::int64_t{1} << 27U;

/// Adds "unit" (ps), "end", "count" and the columns of spans as base64 of LEB128 numbers: begin less the one before,
/// length, lane, look, label, chunk. Requires: spans in begin order.
void add_span_columns(nlohmann::ordered_json& data, const std::vector<PageSpan>& spans, Picoseconds end);

/// The document as it may stand in a script element.
std::string in_script(const nlohmann::ordered_json& data);

}  // namespace espalier::report
