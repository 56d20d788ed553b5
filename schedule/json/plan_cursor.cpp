#include "schedule/json/plan_cursor.h"

#include <fmt/format.h>

namespace espalier {

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result(text.substr(0, longest));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  if (text.size() <= longest) return result;
  while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xC0U) == 0x80U) result.pop_back();
  if (!result.empty() && static_cast<unsigned char>(result.back()) >= 0xC0U) result.pop_back();
  return result + "...";
}

Error PlanCursor::error() const {
  const JsonCursor::Failure& failure = json.failure();
  const TextPosition place = position(failure.offset);
  const std::string item = item_kind_.empty() ? "" : fmt::format("{} {}: ", item_kind_, item_index_);
  return {code, fmt::format("{}:{}:{}: {}{}", name_, place.line, place.column, item, failure.message), failure.help};
}

bool PlanCursor::read_ranged(std::string_view what, std::int64_t low, std::int64_t high, std::int64_t& value) {
  const std::size_t begin = json.next_offset();
  if (!json.read_integer(value)) return false;
  if (value >= low && value <= high) return true;
  return json.fail(begin, fmt::format("{} is {}", what, value),
                   low <= high ? fmt::format("give a number from {} to {}", low, high) : "there is none to give");
}

}  // namespace espalier
