#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/rendezvous/control_plane.h"

namespace espalier::test {

using PlaneResult = Result<std::unique_ptr<engine::rendezvous::ControlPlane>>;
inline constexpr std::chrono::milliseconds long_enough{20000};
inline constexpr const char* test_secret = "a secret of the tests";

inline std::vector<std::uint32_t> everyone(std::uint32_t world) {
  std::vector<std::uint32_t> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

inline engine::rendezvous::Options options_of(std::uint32_t rank, std::uint32_t world, std::uint16_t port,
                                              std::chrono::milliseconds timeout = long_enough) {
  engine::rendezvous::Options options;
  options.host = "127.0.0.1";
  options.port = port;
  options.rank = rank;
  options.world = world;
  options.secret = test_secret;
  options.timeout = timeout;
  options.job = "test";
  return options;
}

/// Runs `body` once per rank, each in a thread of its own, and waits for all.
inline void on_each_rank(std::uint32_t world, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

/// Every rank of a job joins, each in a thread; `change` may alter a rank's options before.
inline std::vector<PlaneResult> join_all(std::uint32_t world,
                                         const std::function<void(engine::rendezvous::Options&)>& change = {}) {
  auto listener = engine::rendezvous::listen_on("127.0.0.1", 0);
  if (!listener) return {};
  std::vector<PlaneResult> planes(world);
  const std::uint16_t port = listener->port;
  on_each_rank(world, [&](std::uint32_t rank) {
    engine::rendezvous::Options options = options_of(rank, world, port);
    if (rank == 0) options.listener = std::move(*listener);
    if (change) change(options);
    planes[rank] = engine::rendezvous::ControlPlane::join(std::move(options));
  });
  return planes;
}

/// The same where nothing may go wrong.
inline std::vector<std::unique_ptr<engine::rendezvous::ControlPlane>> planes_of(std::uint32_t world) {
  std::vector<std::unique_ptr<engine::rendezvous::ControlPlane>> planes;
  for (PlaneResult& plane : join_all(world)) {
    EXPECT_TRUE(plane.has_value()) << plane.error().message;
    planes.push_back(plane ? std::move(*plane) : nullptr);
  }
  return planes;
}

}  // namespace espalier::test
