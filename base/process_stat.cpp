#include "base/process_stat.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace espalier {

std::optional<ProcessStat> read_process_stat(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // The second field is the command in parentheses and may hold anything; state and parent follow, and the start is
  // the 20th behind it.
  const std::size_t place = text.rfind(')');
  if (place == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(place + 1));
  ProcessStat stat;
  std::string skipped;
  fields >> skipped >> stat.parent;
  constexpr int fields_between = 17;
  for (int field = 0; field < fields_between; ++field) fields >> skipped;
  fields >> stat.start;
  if (!fields) return std::nullopt;
  return stat;
}

}  // namespace espalier
