#include "engine/launch/rank_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>

namespace espalier::engine::launch {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20U;
constexpr std::int64_t threads_per_rank = 4;
constexpr std::int64_t memory_per_rank = 16 * mebibyte;
/// Of a process besides those for ranks: standard ones, signals, listeners, libraries.
constexpr std::int64_t own_descriptors = 64;

std::int64_t soft_limit(int resource) {
  rlimit limit{};
  constexpr auto most = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return 0;
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, most));  // RLIM_INFINITY is the largest rlim_t.
}

std::optional<std::int64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::int64_t kibibytes = 0;
  for (std::string rest; file >> name >> kibibytes; std::getline(file, rest)) {
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

Result<MachineLimits> read_machine_limits() {
  MachineLimits limits{soft_limit(RLIMIT_NPROC), soft_limit(RLIMIT_NOFILE), 0};
  std::int64_t of_kernel = 0;
  const auto memory = available_memory();
  if (!(std::ifstream("/proc/sys/kernel/threads-max") >> of_kernel) || !memory) {
    return fail(ErrorCode::unavailable, "/proc does not tell how many processes and how much memory there are",
                "mount -t proc proc /proc");
  }
  limits.processes = std::min(limits.processes, of_kernel);
  limits.memory = *memory;
  return limits;
}

Result<void> check_local_ranks(std::uint32_t ranks, const MachineLimits& limits) {
  struct Bound {
    std::int64_t most;
    std::string reason;
  };
  const std::array bounds = {
      Bound{limits.processes / threads_per_rank,
            fmt::format("each has up to {} threads, and there may be {} (ulimit -u)", threads_per_rank,
                        limits.processes)},
      Bound{limits.descriptors - own_descriptors,
            fmt::format("rank 0 has a descriptor for each, and may have {} (ulimit -n)", limits.descriptors)},
      Bound{limits.memory / memory_per_rank, fmt::format("each takes about {} MiB, and {} MiB are available",
                                                         memory_per_rank / mebibyte, limits.memory / mebibyte)}};
  const Bound& least = *std::ranges::min_element(bounds, {}, &Bound::most);
  const std::int64_t most = std::max<std::int64_t>(1, least.most);
  if (ranks <= most) return {};
  return fail(ErrorCode::too_large,
              fmt::format("{} ranks are more than the {} that this machine can run: {}", ranks, most, least.reason),
              fmt::format("take a topology of fewer ranks, or say --max-local-ranks {}", ranks));
}

}  // namespace espalier::engine::launch
