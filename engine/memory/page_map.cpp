#include "engine/memory/page_map.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace espalier::engine {
namespace {

/// A line of /proc/self/maps, which also begins each entry of /proc/self/smaps.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string permissions;  ///< "rw-p": readable, writable, not executable, private.
  std::uint64_t inode = 0;  ///< 0: no file.
  std::string name;
};

bool parse(const std::string& line, Mapping& mapping) {
  unsigned long begin = 0;
  unsigned long end = 0;
  unsigned long long inode = 0;
  char permissions[5] = {};
  int name = 0;
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %*x %*x:%*x %llu %n", &begin, &end, permissions, &inode, &name) != 4) {
    return false;
  }
  mapping = {begin, end, permissions, inode, line.substr(std::min(line.size(), static_cast<std::size_t>(name)))};
  return true;
}

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

Range range_of(const void* data, std::int64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + static_cast<std::uintptr_t>(bytes)};
}

/// What is wrong with a mapping; nothing where its pages may be replaced.
std::string objection(const Mapping& mapping) {
  if (mapping.permissions.ends_with('s')) {
    return fmt::format("is shared with other processes{}", mapping.name.empty() ? "" : " (" + mapping.name + ")");
  }
  if (mapping.inode != 0) return fmt::format("is mapped from the file {}", mapping.name);
  if (mapping.permissions != "rw-p")
    return fmt::format("is mapped '{}', not readable and writable", mapping.permissions);
  if (mapping.name == "[stack]") return "is on the stack";
  return {};
}

}  // namespace

Result<void> check_replaceable(const void* data, std::int64_t bytes) {
  const Range range = range_of(data, bytes);
  std::uintptr_t covered = range.begin;
  std::ifstream maps("/proc/self/maps");
  Mapping mapping;
  for (std::string line; covered < range.end && std::getline(maps, line);) {
    if (!parse(line, mapping) || mapping.end <= covered) continue;
    if (mapping.begin > covered) break;
    if (const std::string wrong = objection(mapping); !wrong.empty()) {
      return fail(
          ErrorCode::invalid_input, fmt::format("a buffer of {} bytes at {} {}", bytes, fmt::ptr(data), wrong),
          "call on it as it is, without registering it, or copy it into memory that the communicator allocates");
    }
    covered = mapping.end;
  }
  if (covered >= range.end) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("/proc/self/maps does not show all of a buffer of {} bytes at {}", bytes, fmt::ptr(data)),
              "mount /proc, or let the communicator allocate the buffer");
}

bool is_locked(const void* data, std::int64_t bytes) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line) && !line.starts_with("VmLck:")) {
  }
  if (line.find_first_of("123456789") == std::string::npos) return false;
  const Range range = range_of(data, bytes);
  std::ifstream smaps("/proc/self/smaps");  // Slow: it looks at every page there is.
  Mapping mapping;
  bool is_within = false;
  while (std::getline(smaps, line)) {
    if (parse(line, mapping)) {
      if (mapping.begin >= range.end) return false;
      is_within = mapping.end > range.begin;
    } else if (is_within && line.starts_with("VmFlags:") && line.find(" lo") != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace espalier::engine
