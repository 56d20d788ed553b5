#include "cli/verbs/commands.h"

namespace espalier::cli {

std::string examples(std::initializer_list<std::string_view> lines) {
  std::string text = "Examples:\n";
  for (const std::string_view line : lines) text += "  " + std::string(line) + "\n";
  return text;
}

}  // namespace espalier::cli
