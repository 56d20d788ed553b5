#include "lab/namespaces/job_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "base/process_stat.h"

namespace espalier::lab {
namespace {

constexpr std::string_view family = "espalier-";

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

JobName own_job_name() { return {getpid(), read_process_stat(getpid()).value_or(ProcessStat{}).start, 0}; }

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

bool is_alive(const JobName& job) {
  const auto stat = read_process_stat(job.pid);
  return stat && stat->start == job.start;
}

}  // namespace espalier::lab
