#include "lab/namespaces/clean_up.h"

#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"
#include "lab/namespaces/end_processes.h"
#include "lab/namespaces/name_space.h"

namespace espalier::lab {
namespace {

/// As `ip netns del`, but never through a link.
Result<void> remove_entry(const std::string& name) {
  const std::string path = name_space_path(name);
  while (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) continue;
  const int unmounted = errno;  // EINVAL: nothing is mounted there any more.
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  const int cause = unmounted == EINVAL || unmounted == ENOENT ? errno : unmounted;
  return fail(ErrorCode::unavailable, fmt::format("cannot remove {}: {}", path, error_text(cause)));
}

void add_reason(std::string& reasons, const std::string& reason) { reasons += (reasons.empty() ? "" : "; ") + reason; }

}  // namespace

Result<void> tear_down(JobLock& lock) {
  const std::vector<std::string> names = list_name_spaces(lock.job().prefix() + "-");
  std::vector<HeldNameSpace> spaces;
  std::string reasons;
  for (const std::string& name : names) {
    auto space = hold_name_space(name);
    if (space) {
      spaces.push_back(std::move(*space));
    } else if (space.error().code != ErrorCode::invalid_input) {
      add_reason(reasons, space.error().message);  // It may hold processes, which would lose their name.
    }
  }
  if (auto ended = end_processes_in(spaces); !ended) return ended;
  if (!reasons.empty()) return fail(ErrorCode::unavailable, reasons);
  for (const std::string& name : names) {
    if (const auto removed = remove_entry(name); !removed) add_reason(reasons, removed.error().message);
  }
  if (!reasons.empty()) return fail(ErrorCode::unavailable, reasons);
  lock.remove();
  return {};
}

Result<std::vector<std::string>> clean_leftovers() {
  std::vector<JobName> jobs = list_locked_jobs();
  for (const std::string& name : list_name_spaces("")) {
    if (const auto job = job_of(name)) jobs.push_back(*job);
  }
  std::ranges::sort(jobs, {}, &JobName::prefix);
  jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
  std::vector<std::string> cleaned;
  std::string reasons;
  std::string hint;
  for (const JobName& job : jobs) {
    if (is_alive(job)) continue;
    auto lock = JobLock::try_take(job);
    const auto done = !lock ? tl::unexpected(lock.error()) : *lock ? tear_down(**lock) : Result<void>();
    if (!done) {
      add_reason(reasons, done.error().message);
      hint = done.error().help;
    } else if (*lock) {
      cleaned.push_back(job.prefix());
    }
  }
  if (!reasons.empty()) return fail(ErrorCode::unavailable, std::move(reasons), std::move(hint));
  return cleaned;
}

}  // namespace espalier::lab
