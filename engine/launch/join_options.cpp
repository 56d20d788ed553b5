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

}  // namespace

Result<rendezvous::Options> join_options(const LaunchInfo& launch, std::string secret,
                                         std::chrono::milliseconds timeout) {
  rendezvous::Options options{.host = launch.host,
                              .port = launch.port,
                              .rank = launch.rank,
                              .world = launch.world,
                              .secret = std::move(secret),
                              .timeout = timeout,
                              .job = launch.job,
                              .was_listening = is_first_job() && launch.is_local_job()};
  if (!launch.listener_fd) return options;
  auto listener = rendezvous::adopt_listener(*launch.listener_fd);
  if (!listener) return tl::unexpected(listener.error());
  options.listener = *std::move(listener);
  return options;
}

}  // namespace espalier::engine::launch
