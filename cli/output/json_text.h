#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>

namespace espalier::cli {

/// A document as `--json` prints it, indented, with a line break at its end. Bytes that are not UTF-8 (a file's name
/// may have them) become U+FFFD, and characters that would steer a terminal \u escapes: JSON means the same with them.
std::string json_text(const nlohmann::ordered_json& document);

}  // namespace espalier::cli
