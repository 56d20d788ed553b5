#include "lab/namespaces/name_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/error_text.h"

namespace espalier::lab {

std::string name_space_path(std::string_view name) { return "/run/netns/" + std::string(name); }

std::vector<std::string> list_name_spaces(std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code status;
  for (std::filesystem::directory_iterator entry("/run/netns", status), end; !status && entry != end;
       entry.increment(status)) {
    std::string name = entry->path().filename();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

Result<void> inside(const std::string& name_space, const std::function<Result<void>()>& work) {
  Result<void> done;
  // A thread of its own, so that the caller never changes its namespace, whatever happens.
  std::thread([&] {
    const int fd = open(name_space_path(name_space).c_str(), O_RDONLY | O_CLOEXEC);
    const bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
    const int cause = errno;
    if (fd >= 0) close(fd);
    done = entered ? work()
                   : fail(ErrorCode::unavailable,
                          fmt::format("cannot enter the network namespace {}: {}", name_space, error_text(cause)));
  }).join();
  return done;
}

Result<std::vector<DeviceCount>> count_devices(const std::string& name_space) {
  std::vector<DeviceCount> counts;
  const auto counted = inside(name_space, [&]() -> Result<void> {
    std::ifstream file("/proc/thread-self/net/dev");
    std::string line;
    while (std::getline(file, line)) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) continue;  // Head lines.
      DeviceCount count;
      std::istringstream(line.substr(0, colon)) >> count.device;
      std::istringstream numbers(line.substr(colon + 1));
      std::uint64_t skipped = 0;
      constexpr int receive_columns = 8;
      for (int column = 0; column < receive_columns; ++column) numbers >> skipped;
      numbers >> count.sent_bytes >> count.sent_packets;
      counts.push_back(std::move(count));
    }
    return {};
  });
  if (!counted) return tl::unexpected(counted.error());
  return counts;
}

}  // namespace espalier::lab
