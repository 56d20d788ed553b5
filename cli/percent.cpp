#include "cli/percent.h"

#include <charconv>
#include <string_view>

namespace espalier::cli {

Result<double> parse_percent(const std::string& flag, const std::string& text, const std::string& example) {
  double percent = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (status != std::errc() || unit != "%" || !(percent >= 0) || percent > 100) {
    return fail(ErrorCode::invalid_input, flag + ": '" + text + "' is not a part from 0% to 100%",
                "write " + flag + " " + example);
  }
  return percent / 100;
}

}  // namespace espalier::cli
