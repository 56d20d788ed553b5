#include "cli/flags/flag_values.h"

#include "base/parse_units.h"

namespace espalier::cli {

Result<Bytes> parse_message_size(const std::string& text) {
  const auto size = parse_size(text);
  if (!size) return fail(size.error().code, "-s: " + size.error().message, size.error().help);
  const std::int64_t element_size = size_of(usual_type);
  return Bytes{size->count / element_size * element_size};
}

Result<std::int32_t> parse_part_ppm(const std::string& flag, const std::string& text) {
  const auto part = espalier::parse_part(text);
  if (!part) return fail(part.error().code, flag + ": " + part.error().message, part.error().help);
  const bool is_bare_one = *part == 1'000'000 && text.find('%') == std::string::npos;
  if (!is_bare_one) return part;
  return fail(ErrorCode::invalid_input, flag + ": '" + text + "' may mean 1 % or all", "write 1% or 100%");
}

Result<Rational> parse_part(const std::string& flag, const std::string& text) {
  const auto part = parse_part_ppm(flag, text);
  if (!part) return tl::unexpected(part.error());
  return make_rational(*part, 1'000'000);
}

}  // namespace espalier::cli
