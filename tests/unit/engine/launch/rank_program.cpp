// What the tests of local jobs start: a rank that behaves as its first argument says, or a launcher of such ranks.
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

#include "engine/launch/detect_launch.h"
#include "engine/launch/local_job.h"
#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/secret.h"

namespace {

using namespace espalier;

void say(const std::string& line) { fmt::print(stderr, "{}\n", line); }

[[noreturn]] void sleep_for_ever() {
  while (true) pause();
}

std::unique_ptr<engine::rendezvous::ControlPlane> join(const engine::launch::LaunchInfo& launch) {
  engine::rendezvous::Options options;
  options.host = launch.host;
  options.port = launch.port;
  options.rank = launch.rank;
  options.world = launch.world;
  options.job = launch.job;
  options.secret = engine::rendezvous::find_secret(engine::rendezvous::process_environment()).value_or("");
  if (launch.listener_fd) {
    auto listener = engine::rendezvous::adopt_listener(*launch.listener_fd, launch.port);
    if (listener) options.listener = std::move(*listener);
  }
  auto plane = engine::rendezvous::ControlPlane::join(std::move(options));
  if (plane) return std::move(*plane);
  say(plane.error().message);
  return nullptr;
}

bool meet_all(engine::rendezvous::ControlPlane& plane) {
  std::vector<std::uint32_t> all(plane.world());
  std::iota(all.begin(), all.end(), 0U);
  return plane.barrier("all", all, std::chrono::seconds(20)).has_value();
}

/// Joins, meets all, and says on standard output and standard error who it is.
int meet(const engine::launch::LaunchInfo& launch) {
  const auto plane = join(launch);
  if (!plane || !meet_all(*plane)) return 1;
  fmt::print("output of {}\n", launch.rank);
  say(fmt::format("rank {} of {} met all", launch.rank, launch.world));
  return 0;
}

/// Rank 1 is killed; the others see it, say so, and exit with 7.
int report(const engine::launch::LaunchInfo& launch) {
  const auto plane = join(launch);
  if (!plane || !meet_all(*plane)) return 1;
  if (launch.rank == 1) {
    say("about to die");
    raise(SIGKILL);
  }
  pollfd entry{plane->failure_fd(), POLLIN, 0};
  if (poll(&entry, 1, 20000) != 1) return 1;
  say(plane->failure_error().message);
  return 7;
}

int launch_ranks(const std::string& behaviour) {
  engine::launch::LocalJobOptions options;
  options.world = 3;
  options.arguments = {behaviour};
  options.grace = std::chrono::milliseconds(500);
  options.on_error_line = [](std::uint32_t rank, const std::string& line) {
    fmt::print("rank {}: {}\n", rank, line);
    std::fflush(stdout);
  };
  const auto result = engine::launch::run_local_job(options);
  if (!result) return 99;
  fmt::print("{}", result->summary());
  return result->exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string behaviour = argc > 1 ? argv[1] : "";
  if (behaviour == "launch") return launch_ranks(argc > 2 ? argv[2] : "");
  const auto launch = engine::launch::detect_launch(engine::rendezvous::process_environment());
  if (!launch) return 1;
  if (behaviour == "meet") return meet(*launch);
  if (behaviour == "report") return report(*launch);
  if (behaviour == "sleep") {
    say(fmt::format("process {}", getpid()));
    sleep_for_ever();
  }
  if (behaviour == "stubborn") {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    say(fmt::format("process {}", getpid()));
    sleep_for_ever();
  }
  if (behaviour == "one-fails") {
    for (int i = 0; i < 30 && launch->rank == 2; ++i) say(fmt::format("line {}", i));
    if (launch->rank == 2) return 42;
    sleep_for_ever();
  }
  return 1;
}
