#include "cli/output/json_text.h"

#include "base/printable.h"

namespace espalier::cli {

std::string json_text(const nlohmann::ordered_json& document) {
  constexpr int indent = 2;
  std::string text = document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  // The one control character below U+0080 that JSON lets through, and for which its escape is not `printable`'s.
  for (std::size_t at = text.find('\x7f'); at != std::string::npos; at = text.find('\x7f', at)) {
    text.replace(at, 1, "\\u007f");
  }
  return printable(text);
}

}  // namespace espalier::cli
