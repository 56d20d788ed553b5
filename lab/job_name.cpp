#include "lab/job_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>

namespace espalier::lab {
namespace {

constexpr std::string_view family = "espalier-";

/// When a process was started, in clock ticks after boot; nothing when there is no such process.
std::optional<std::uint64_t> start_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // The second field is the command in parentheses and may hold anything; the start is the 20th behind it.
  std::size_t place = text.rfind(')');
  if (place == std::string::npos) return std::nullopt;
  constexpr int fields_before = 20;
  for (int field = 0; field < fields_before; ++field) {
    place = text.find(' ', place + 1);
    if (place == std::string::npos) return std::nullopt;
  }
  std::uint64_t start = 0;
  std::from_chars(text.data() + place + 1, text.data() + text.size(), start);
  return start;
}

/// Takes a number and the '-' behind it off the front of `text`.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || rest == text.data() + text.size() || *rest != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return true;
}

}  // namespace

std::string JobName::prefix() const { return fmt::format("{}{}-{}-{}", family, pid, start, number); }

JobName own_job_name() { return {getpid(), start_of(getpid()).value_or(0), 0}; }

std::optional<JobName> job_of(std::string_view name_space) {
  if (!name_space.starts_with(family)) return std::nullopt;
  const std::string whole(name_space);
  name_space.remove_prefix(family.size());
  JobName job;
  const bool read =
      take_number(name_space, job.pid) && take_number(name_space, job.start) && take_number(name_space, job.number);
  // Also no other spelling of the numbers, whose namespaces would not be found by the prefix.
  if (!read || job.pid <= 0 || !whole.starts_with(job.prefix() + "-")) return std::nullopt;
  return job;
}

bool is_alive(const JobName& job) { return start_of(job.pid) == job.start; }

}  // namespace espalier::lab
