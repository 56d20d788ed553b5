#include "bench/simgrid/measure.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>

namespace espalier::bench {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::optional<Measured> measure(const std::function<Simulated()>& simulate) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    const Simulated result = simulate();
    const bool sent = write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  Simulated result;
  const bool received = read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  close(ends[0]);
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0 || !received) return std::nullopt;
  return Measured{
      .simulated_s = result.simulated_s,
      .user_s = static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6,
      .run_s = result.run_s,
      .peak_mb = static_cast<double>(usage.ru_maxrss) / 1024};
}

}  // namespace espalier::bench
