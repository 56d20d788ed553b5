#include "engine/rendezvous/names.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <system_error>

#include "engine/rendezvous/wire/messages.h"

namespace espalier::engine::rendezvous {

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t max_named = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < max_named; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  }
  if (ranks.size() > max_named) text += fmt::format(" and {} more", ranks.size() - max_named);
  return text;
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  return count < 1000 ? fmt::format("{} ms", count) : fmt::format("{:g} s", static_cast<double>(count) / 1000);
}

std::string host_name() {
  utsname names{};
  if (uname(&names) != 0 || names.nodename[0] == '\0') return "unknown";
  return names.nodename;
}

std::string process_name() { return fmt::format("host {}, process {}", host_name(), getpid()).substr(0, longest_name); }

std::string errno_text(int number) { return std::error_code(number, std::generic_category()).message(); }

}  // namespace espalier::engine::rendezvous
