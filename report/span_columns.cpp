#include "report/span_columns.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/html_text.h"

namespace espalier::report {
namespace {

void append_leb128(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80U; number >>= 7U) bytes += static_cast<char>((number & 0x7fU) | 0x80U);
  bytes += static_cast<char>(number);
}

}  // namespace

void add_span_columns(nlohmann::ordered_json& data, const std::vector<PageSpan>& spans, Picoseconds end) {
  const std::int64_t unit = std::max<std::int64_t>(1, end.count / time_steps);
  data["unit"] = unit;
  data["end"] = end.count / unit;
  data["count"] = spans.size();
  // Each column's numbers are alike, so they are short.
  std::string begins, lengths, lanes, looks, labels, chunks;
  std::int64_t before = 0;
  for (const PageSpan& span : spans) {
    const std::int64_t begin = span.begin.count / unit;
    append_leb128(begins, static_cast<std::uint64_t>(begin - before));
    append_leb128(lengths, static_cast<std::uint64_t>(span.end.count / unit - begin));
    append_leb128(lanes, span.lane);
    append_leb128(looks, span.look);
    append_leb128(labels, span.label);
    append_leb128(chunks, span.chunk);
    before = begin;
  }
  data["begins"] = base64(begins);
  data["lengths"] = base64(lengths);
  data["lanes"] = base64(lanes);
  data["phases"] = base64(looks);
  data["transfers"] = base64(labels);
  data["chunks"] = base64(chunks);
}

std::string in_script(const nlohmann::ordered_json& data) {
  std::string text = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  // A script element ends at "</script", wherever that stands.
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace espalier::report
