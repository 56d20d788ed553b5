#include "scenario/workload/flop_rate.h"

#include <cctype>
#include <string>

namespace espalier::scenario {
namespace {

constexpr std::string_view example = "write a rate such as 989 TFLOP/s";

tl::unexpected<Error> bad_flop_rate(std::string_view text) {
  return fail(ErrorCode::invalid_input, "'" + std::string(text.substr(0, 60)) + "' is not a rate of computing",
              std::string(example));
}

}  // namespace

Result<FlopRate> parse_flop_rate(std::string_view text) {
  __int128 number = 0;
  std::size_t at = 0;
  std::int64_t below = 1;  // how much the digits read so far are too large by
  bool has_digits = false, has_point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) break;
    has_digits = true;
    number = number * 10 + (text[at] - '0');
    if (has_point) below *= 10;
    if (number > 1'000'000'000'000'000 || below > 1'000'000'000'000) return bad_flop_rate(text);
  }
  if (!has_digits) return bad_flop_rate(text);
  while (at < text.size() && text[at] == ' ') ++at;
  std::string_view unit = text.substr(at);
  std::int64_t factor = 1;
  constexpr std::string_view prefixes = "kMGTP";
  if (const std::size_t prefix = unit.empty() ? std::string_view::npos : prefixes.find(unit.front());
      prefix != std::string_view::npos) {
    for (std::size_t i = 0; i <= prefix; ++i) factor *= 1000;
    unit.remove_prefix(1);
  }
  if (unit != "FLOP/s" && unit != "FLOPS") return bad_flop_rate(text);
  number *= factor;
  if (number % below != 0 || number / below > (std::int64_t{1} << 62) || number == 0) return bad_flop_rate(text);
  return FlopRate{static_cast<std::int64_t>(number / below)};
}

}  // namespace espalier::scenario
