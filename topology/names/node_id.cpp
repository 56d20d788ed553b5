#include "topology/names/node_id.h"

#include <algorithm>

#include "topology/yaml/read_limits.h"
#include "topology/yaml/source_text.h"

namespace espalier {

std::string_view why_bad_node_id(std::string_view id) {
  if (id.empty()) return "is empty";
  if (id.size() > read_limits::name_bytes) return "is longer than 256 bytes";
  if (id.front() == ' ' || id.back() == ' ') return "begins or ends with a blank";
  for (const char letter : id) {
    if (letter == '>') return "holds a '>'";
    if (letter == '#') return "holds a '#'";
    if (letter == '[' || letter == ']') return "holds a bracket";
    if (letter == '\n' || letter == '\t' || letter == '\r') return "holds a control character";
  }
  if (!check_text(id)) return "is not UTF-8 or holds a control character";
  return {};
}

}  // namespace espalier
