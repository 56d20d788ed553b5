#include "lab/namespaces/end_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/error_text.h"

namespace espalier::lab {
namespace {

using Clock = std::chrono::steady_clock;

FileDescriptor open_process(int process) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));  // Close-on-exec by itself.
}

const HeldNameSpace* space_of(int process, std::span<const HeldNameSpace> spaces) {
  const auto found = std::ranges::find_if(spaces, [&](const HeldNameSpace& space) { return space.holds(process); });
  return found == spaces.end() ? nullptr : &*found;
}

/// A process that was sent SIGKILL.
struct Ending {
  int process = 0;
  const HeldNameSpace* space = nullptr;
  FileDescriptor fd;
};

/// One process, if it is in one of the namespaces; nothing in `fd` when it is not, or has ended by itself.
Result<Ending> kill_one(int process, std::span<const HeldNameSpace> spaces) {
  if (space_of(process, spaces) == nullptr) return Ending{};
  Ending ending{process, nullptr, open_process(process)};
  if (!ending.fd.is_open()) {
    if (errno == ESRCH) return Ending{};
    return fail(ErrorCode::unavailable, fmt::format("cannot open process {}: {}", process, error_text(errno)));
  }
  // Asked again: what is true now is true of the process that the descriptor is of, or that one has ended.
  ending.space = space_of(process, spaces);
  if (ending.space == nullptr) return Ending{};
  if (syscall(SYS_pidfd_send_signal, ending.fd.get(), SIGKILL, nullptr, 0) == 0) return ending;
  if (errno == ESRCH) return Ending{};
  return fail(ErrorCode::unavailable,
              fmt::format("cannot end process {} in {}: {}", process, ending.space->name, error_text(errno)));
}

/// Everything that /proc shows; process 1 and this one are not asked at all.
Result<std::vector<Ending>> kill_all(std::span<const HeldNameSpace> spaces) {
  std::vector<Ending> endings;
  std::error_code status;
  for (std::filesystem::directory_iterator entry("/proc", status), end; !status && entry != end;
       entry.increment(status)) {
    const std::string name = entry->path().filename();
    int process = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (wrong != std::errc() || rest != name.data() + name.size()) continue;
    if (process <= 1 || process == getpid()) continue;
    auto ending = kill_one(process, spaces);
    if (!ending) return tl::unexpected(ending.error());
    if (ending->fd.is_open()) endings.push_back(std::move(*ending));
  }
  if (status) return fail(ErrorCode::unavailable, "cannot read /proc: " + status.message());
  return endings;
}

Result<void> wait_for(const std::vector<Ending>& endings, Clock::time_point deadline) {
  for (const Ending& ending : endings) {
    pollfd waited{ending.fd.get(), POLLIN, 0};
    for (int ready = 0; ready <= 0;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) {
        return fail(ErrorCode::unavailable,
                    fmt::format("process {} in {} was killed and does not end", ending.process, ending.space->name));
      }
      ready = poll(&waited, 1, static_cast<int>(left));
    }
  }
  return {};
}

Result<void> refuse_own(std::span<const HeldNameSpace> spaces) {
  for (const auto& [process, whose] : {std::pair{getpid(), "this process"}, std::pair{1, "process 1"}}) {
    const HeldNameSpace* const space = space_of(process, spaces);
    if (space == nullptr) continue;
    return fail(ErrorCode::unavailable,
                fmt::format("{} is the network namespace of {}, so nothing in it is ended", space->name, whose),
                "run it from outside the lab, or remove " + space->name + " from /run/netns by hand");
  }
  return {};
}

}  // namespace

Result<void> end_processes_in(std::span<const HeldNameSpace> spaces) {
  if (auto refused = refuse_own(spaces); !refused) return refused;
  constexpr std::chrono::seconds longest{10};
  const Clock::time_point deadline = Clock::now() + longest;
  for (;;) {
    const auto endings = kill_all(spaces);
    if (!endings) return tl::unexpected(endings.error());
    if (endings->empty()) return {};  // Nobody is left who could start another.
    if (auto waited = wait_for(*endings, deadline); !waited) return waited;
  }
}

Result<void> probe_process_descriptors() {
  std::error_code status;
  if (!std::filesystem::exists("/proc/self/ns/net", status)) {
    return fail(ErrorCode::unavailable, "/proc does not show the namespaces of processes", "mount -t proc proc /proc");
  }
  const FileDescriptor own = open_process(getpid());
  if (own.is_open() && syscall(SYS_pidfd_send_signal, own.get(), 0, nullptr, 0) == 0) return {};
  return fail(ErrorCode::unavailable, "the kernel has no descriptors of processes: " + error_text(errno),
              "pidfd_open(2) needs Linux 5.3 or later");
}

}  // namespace espalier::lab
