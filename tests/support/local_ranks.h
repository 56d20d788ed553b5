#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/communicator/communicator.h"
#include "engine/rendezvous/wire/listener.h"

namespace espalier {

/// Runs a function as each rank of a job, in a thread each, and joins them. A rank that cannot join reports a failure.
inline void run_ranks(std::uint32_t world, const ScheduleSource& schedules, JobOptions options,
                      const std::function<void(Communicator&)>& body) {
  auto listener = engine::rendezvous::listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener) << listener.error().message;
  const std::uint16_t port = listener->port;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    JobOptions own;
    own.transport = options.transport;
    own.timeout = options.timeout;
    own.checksum = options.checksum;
    own.sockets_per_peer = options.sockets_per_peer;
    own.verbs = options.verbs;
    own.make_device = options.make_device;
    own.make_transports = options.make_transports;
    own.rendezvous.host = "127.0.0.1";
    own.rendezvous.port = port;
    own.rendezvous.rank = rank;
    own.rendezvous.world = world;
    own.rendezvous.secret = "a secret of this test";
    if (rank == 0) own.rendezvous.listener = std::move(*listener);
    threads.emplace_back([own = std::move(own), &schedules, &body, rank]() mutable {
      auto joined = Communicator::join(std::move(own), schedules);
      if (!joined) {
        ADD_FAILURE() << "rank " << rank << ": " << joined.error().message;
        return;
      }
      body(**joined);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace espalier
