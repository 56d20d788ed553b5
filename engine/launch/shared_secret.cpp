#include "engine/launch/shared_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/file_descriptor.h"
#include "base/fnv.h"
#include "base/process_stat.h"
#include "engine/rendezvous/names.h"
#include "engine/rendezvous/secret.h"

namespace espalier::engine::launch {
namespace {

tl::unexpected<Error> cannot(const std::string& what, const std::string& path, int number) {
  return fail(ErrorCode::unavailable, fmt::format("cannot {} {}: {}", what, path, rendezvous::errno_text(number)),
              "set ESPALIER_SECRET_FILE on all ranks");
}

/// Whether a process was started with a variable; false also where that cannot be read.
bool was_given(pid_t process, const std::string& variable) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(variable + "=")) return true;
  }
  return false;
}

/// The nearest ancestor that was not started as a rank itself: shells and debuggers between it and a rank were.
Result<pid_t> find_launcher_process(const std::string& rank_variable) {
  pid_t process = getppid();
  while (process > 1 && was_given(process, rank_variable)) {
    const auto stat = read_process_stat(process);
    if (!stat) break;
    process = stat->parent;
  }
  if (process > 0) return process;
  return fail(ErrorCode::unavailable, "the launcher's process cannot be found",
              "set ESPALIER_SECRET_FILE on all ranks");
}

/// A folder that only this user can look into, made where it is not there.
Result<std::string> private_folder(const rendezvous::Environment& environment) {
  struct stat status {};
  std::string path = fmt::format("/tmp/espalier-{}", geteuid());
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  const bool has_runtime = runtime != environment.end() && lstat(runtime->second.c_str(), &status) == 0 &&
                           S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  if (has_runtime) path = runtime->second + "/espalier";
  constexpr mode_t own_only = 0700;
  if (mkdir(path.c_str(), own_only) != 0 && errno != EEXIST) return cannot("make", path, errno);
  if (lstat(path.c_str(), &status) != 0) return cannot("look at", path, errno);
  if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return path;
  return fail(ErrorCode::invalid_input, path + " is not a folder of this user alone", "remove it, or chmod 700 it");
}

/// "PID-START-...": whether that process is gone.
bool is_left_over(const std::string& name) {
  const char* const end = name.data() + name.size();
  pid_t process = 0;
  std::uint64_t start = 0;
  const auto first = std::from_chars(name.data(), end, process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, end, start);
  if (second.ec != std::errc()) return false;
  const auto stat = read_process_stat(process);
  return !stat || stat->start != start;
}

void remove_left_overs(const std::string& folder) {
  std::error_code status;
  for (std::filesystem::directory_iterator entry(folder, status), end; !status && entry != end;
       entry.increment(status)) {
    if (is_left_over(entry->path().filename())) unlink(entry->path().c_str());
  }
}

/// Writes a new secret under a name of its own and then gives it the common name, so that nobody reads half of it.
Result<void> write_first(const std::string& path) {
  const auto secret = rendezvous::random_secret();
  if (!secret) return tl::unexpected(secret.error());
  const std::string own = fmt::format("{}.{}", path, getpid());
  constexpr mode_t own_only = 0600;
  const FileDescriptor fd(open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, own_only));
  if (!fd.is_open()) return cannot("create", own, errno);
  const bool is_written = write(fd.get(), secret->data(), secret->size()) == static_cast<ssize_t>(secret->size());
  const int write_error = errno;
  const bool is_linked = is_written && link(own.c_str(), path.c_str()) == 0;
  const int link_error = errno;
  unlink(own.c_str());
  if (!is_written) return cannot("write", own, write_error);
  if (!is_linked && link_error != EEXIST) return cannot("create", path, link_error);
  return {};
}

}  // namespace

Result<SharedSecret> share_secret(const LaunchInfo& launch, const rendezvous::Environment& environment) {
  const auto launcher = find_launcher_process(launch.rank_variable);
  if (!launcher) return tl::unexpected(launcher.error());
  const auto stat = read_process_stat(*launcher);
  if (!stat) return fail(ErrorCode::unavailable, fmt::format("the launcher's process {} is gone", *launcher));
  const auto folder = private_folder(environment);
  if (!folder) return tl::unexpected(folder.error());
  Fnv1a job;  // A launcher may start several.
  job.add_text(launch.job);
  const std::string path = fmt::format("{}/{}-{}-{:016x}", *folder, *launcher, stat->start, job.value());
  if (access(path.c_str(), F_OK) != 0) {
    remove_left_overs(*folder);
    if (auto written = write_first(path); !written) return tl::unexpected(written.error());
  }
  auto text = rendezvous::read_secret_file(path);
  if (!text) return tl::unexpected(text.error());
  return SharedSecret{std::move(*text), path};
}

Result<SharedSecret> secret_of(const LaunchInfo& launch, const rendezvous::Environment& environment,
                               const std::string& file) {
  const bool is_given =
      !file.empty() || environment.contains("ESPALIER_SECRET") || environment.contains("ESPALIER_SECRET_FILE");
  if (!is_given && launch.is_one_machine) return share_secret(launch, environment);
  auto given = file.empty() ? rendezvous::find_secret(environment) : rendezvous::read_secret_file(file);
  if (!given) return tl::unexpected(given.error());
  return SharedSecret{*std::move(given), ""};
}

}  // namespace espalier::engine::launch
