#include "engine/launch/join_options.h"

#include <utility>

namespace espalier::engine::launch {

Result<rendezvous::Options> join_options(const LaunchInfo& launch, std::string secret,
                                         std::chrono::milliseconds timeout) {
  rendezvous::Options options{.host = launch.host,
                              .port = launch.port,
                              .rank = launch.rank,
                              .world = launch.world,
                              .secret = std::move(secret),
                              .timeout = timeout,
                              .job = launch.job,
                              .was_listening = launch.is_local_job()};
  if (!launch.listener_fd) return options;
  auto listener = rendezvous::adopt_listener(*launch.listener_fd);
  if (!listener) return tl::unexpected(listener.error());
  options.listener = *std::move(listener);
  return options;
}

}  // namespace espalier::engine::launch
