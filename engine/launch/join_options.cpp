#include "engine/launch/join_options.h"

#include <atomic>
#include <utility>

namespace espalier::engine::launch {
namespace {

/// Once true. Between one job and the next of the same processes nobody listens for as long as rank 0 likes.
bool is_first_job() {
  static std::atomic<bool> has_joined{false};
  return !has_joined.exchange(true);
}

/// The socket that the launcher left open for this process, once: the first job closes it with its end, and its number
/// is then whoever's it is given to. None where another socket has that number, as in a process that a rank started.
rendezvous::Listener take_inherited_listener(const LaunchInfo& launch) {
  static std::atomic<bool> was_taken{false};
  if (!launch.listener_fd || was_taken.load()) return {};
  auto listener = rendezvous::adopt_listener(*launch.listener_fd, launch.port);
  if (!listener || was_taken.exchange(true)) return {};
  return *std::move(listener);
}

}  // namespace

rendezvous::Options join_options(const LaunchInfo& launch, std::string secret, std::chrono::milliseconds timeout) {
  rendezvous::Options options{.host = launch.host,
                              .port = launch.port,
                              .rank = launch.rank,
                              .world = launch.world,
                              .secret = std::move(secret),
                              .timeout = timeout,
                              .job = launch.job,
                              .was_listening = is_first_job() && launch.is_local_job()};
  options.listener = take_inherited_listener(launch);
  return options;
}

}  // namespace espalier::engine::launch
