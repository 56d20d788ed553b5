#include "cli/flag_values.h"

#include <charconv>
#include <cmath>

#include "base/parse_units.h"

namespace espalier::cli {

Result<Bytes> parse_message_size(const std::string& text) {
  const auto size = parse_size(text);
  if (!size) return fail(size.error().code, "-s: " + size.error().message, size.error().help);
  const std::int64_t element_size = size_of(usual_type);
  return Bytes{size->count / element_size * element_size};
}

Result<Rational> parse_part(const std::string& flag, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest == "%") value /= 100;
  if (error != std::errc() || (!rest.empty() && rest != "%") || !(value >= 0) || value > 1 ||
      (rest.empty() && value == 1)) {
    return fail(ErrorCode::invalid_input, flag + ": '" + text + "' is not a part below 1, or a percentage up to 100%",
                "write 1% or 0.01");
  }
  return make_rational(std::llround(value * 1e6), 1'000'000);
}

}  // namespace espalier::cli
