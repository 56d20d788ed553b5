#include "engine/memory/available_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace espalier::engine {
namespace {

/// The first number after a word in a file; nothing when it is not there.
std::optional<std::int64_t> number_after(const char* path, const std::string& word) {
  std::ifstream file(path);
  for (std::string found; file >> found;) {
    std::int64_t number = 0;
    if (found == word && file >> number) return number;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// What this machine and the control group that is mounted here can still give, as far as they say.
std::int64_t available_bytes() {
  std::int64_t available = std::numeric_limits<std::int64_t>::max();
  if (const auto kibibytes = number_after("/proc/meminfo", "MemAvailable:")) available = *kibibytes * 1024;
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) available = std::min(available, *limit - *used);
  return available;
}

}  // namespace

Result<void> check_available(std::int64_t bytes, std::string_view what) {
  constexpr std::int64_t small = std::int64_t{16} << 20;
  if (bytes <= small) return {};
  const std::int64_t available = available_bytes();
  if (bytes <= available) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("cannot get {} bytes of {}: {} bytes are available", bytes, what, available),
              "free memory, or raise the memory limit of this container");
}

}  // namespace espalier::engine
