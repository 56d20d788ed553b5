#include "lab/namespaces/job_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error_text.h"
#include "lab/namespaces/name_space.h"

namespace espalier::lab {
namespace {

constexpr const char* lock_folder = "/run/espalier";
constexpr std::string_view lock_ending = ".lock";

std::string lock_path(const JobName& job) { return fmt::format("{}/{}{}", lock_folder, job.prefix(), lock_ending); }

/// Whether the open file still is the one of this path: its last holder may have removed it.
bool is_file_of(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(fd, &opened) == 0 && lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

Result<std::optional<JobLock>> JobLock::try_take(const JobName& job) {
  const std::string path = lock_path(job);
  constexpr mode_t folder_mode = 0700;
  constexpr mode_t file_mode = 0600;
  for (;;) {
    mkdir(lock_folder, folder_mode);  // Where it is there already, or cannot be made, open tells.
    FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, file_mode));
    if (!fd.is_open()) {
      return fail(ErrorCode::unavailable, fmt::format("cannot open {}: {}", path, error_text(errno)),
                  "a lab that root made is removed by root");
    }
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return std::nullopt;
      return fail(ErrorCode::unavailable, fmt::format("cannot lock {}: {}", path, error_text(errno)));
    }
    if (is_file_of(fd.get(), path)) return JobLock(job, std::move(fd));
  }
}

void JobLock::remove() { unlink(lock_path(job_).c_str()); }

Result<JobLock> lock_new_job() {
  JobName job = own_job_name();
  for (;; ++job.number) {
    auto lock = JobLock::try_take(job);
    if (!lock) return tl::unexpected(lock.error());
    // A lab that was left standing has namespaces, and no lock once its owner is gone.
    if (*lock && list_name_spaces(job.prefix() + "-").empty()) return std::move(**lock);
  }
}

std::vector<JobName> list_locked_jobs() {
  std::vector<JobName> jobs;
  std::error_code status;
  for (std::filesystem::directory_iterator entry(lock_folder, status), end; !status && entry != end;
       entry.increment(status)) {
    std::string name = entry->path().filename();
    if (!name.ends_with(lock_ending)) continue;
    name.replace(name.size() - lock_ending.size(), lock_ending.size(), "-");
    if (const auto job = job_of(name)) jobs.push_back(*job);
  }
  return jobs;
}

}  // namespace espalier::lab
