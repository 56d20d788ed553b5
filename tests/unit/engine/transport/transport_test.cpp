// What every transport must do, whatever it is made of. A new one is a row in `every_machine`, or in
// `all_transport_cases`.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "engine/communicator/make_transports.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/exchange/counted_exchange.h"
#include "tests/support/late_device.h"
#include "tests/support/local_ranks.h"
#include "tests/support/loopback_transport.h"

namespace espalier::engine {
namespace {

using std::chrono::milliseconds;
using test::LoopbackTransport;
using test::LoopbackWire;
using test::Memory;
using test::PlannedSource;
using test::run_case;

using Transports = std::vector<std::unique_ptr<engine::Transport>>;

/// The transports of a job, and by which of them rank 0 reaches rank 1 and rank 2.
struct Case {
  const char* name;
  TransportChoice choice;
  LoopbackTransport::Reaches reaches;  ///< Whom the loopback reaches, before what `choice` allows; none: no loopback.
  const char* to_rank_1;
  const char* to_rank_2;
};

bool all(std::uint32_t, std::uint32_t) { return true; }
bool same_parity(std::uint32_t rank, std::uint32_t other) { return rank % 2 == other % 2; }

const std::array every_machine = {Case{"shm", TransportChoice::shm, {}, "shm", "shm"},
                                  Case{"tcp", TransportChoice::tcp, {}, "tcp", "tcp"},
                                  Case{"loopback", TransportChoice::tcp, all, "loopback", "loopback"},
                                  Case{"loopbackAndTcp", TransportChoice::tcp, same_parity, "tcp", "loopback"},
                                  Case{"loopbackAndShm", TransportChoice::shm, same_parity, "shm", "loopback"}};

/// Verbs only where there is a device: scripts/verbs-vm boots a machine with one.
std::vector<Case> all_transport_cases() {
  std::vector<Case> cases(every_machine.begin(), every_machine.end());
  if (has_verbs()) {
    cases.push_back({"verbs", TransportChoice::verbs, {}, "verbs", "verbs"});
    cases.push_back({"verbsAndLoopback", TransportChoice::verbs, same_parity, "verbs", "loopback"});
    cases.push_back({"verbsBesideShm", TransportChoice::shm_verbs, {}, "shm", "shm"});
  }
  return cases;
}

class TransportConformance : public ::testing::TestWithParam<Case> {
 protected:
  JobOptions options() {
    JobOptions options;
    options.transport = GetParam().choice;
    options.timeout = milliseconds(20000);
    if (!GetParam().reaches) return options;
    options.make_transports = [wire = std::make_shared<LoopbackWire>(), &of = GetParam()](
                                  rendezvous::ControlPlane& control, const std::vector<rendezvous::PeerInfo>& peers) {
      JobOptions rest;
      rest.transport = of.choice;
      rest.rendezvous.secret = "of the data connections";
      Transports transports = engine::make_transports(control, peers, rest, true);
      transports.insert(transports.begin(),
                        std::make_unique<LoopbackTransport>(wire, control.rank(), peers.size(), of.reaches));
      return transports;
    };
    return options;
  }
  void run(std::uint32_t ranks, const std::function<void(Communicator&)>& body) { run(ranks, body, options()); }
  void run(std::uint32_t ranks, const std::function<void(Communicator&)>& body, JobOptions options) {
    run_ranks(ranks, source_.source(), std::move(options), body);
  }

  PlannedSource source_{"ring", Bytes{256}};
};

TEST_P(TransportConformance, SaysWhomItReachesAndWhy) {
  run(3, [](Communicator& world) {
    if (world.rank() != 0) return;
    EXPECT_EQ(world.transports()[1].transport, GetParam().to_rank_1);
    EXPECT_EQ(world.transports()[2].transport, GetParam().to_rank_2);
    for (const std::uint32_t peer : {1U, 2U}) EXPECT_FALSE(world.transports()[peer].reason.empty()) << peer;
  });
}

TEST_P(TransportConformance, CarriesEveryCollective) {
  run(4, [](Communicator& world) {
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{3000}}) {
        for (const Memory memory : {Memory::plain, Memory::registered, Memory::adopted}) {
          run_case(world, {kind, ElementType::float32, ReduceOperation::sum, 4, has_root(kind) ? 1U : 0U, count, 1},
                   memory, count % 2 == 1);
          if (::testing::Test::HasFailure()) return world.abort("a test failed");
        }
      }
    }
  });
}

TEST_P(TransportConformance, CarriesExchangesWithCounts) {
  for (const std::uint32_t sockets : {1U, 3U}) {
    JobOptions several = options();
    several.sockets_per_peer = sockets;
    run(
        4,
        [](Communicator& world) {
          std::uint64_t seed = 0;
          for (const std::int64_t most : {std::int64_t{5}, std::int64_t{3000}, std::int64_t{300'000}}) {
            for (const Memory memory : {Memory::plain, Memory::registered, Memory::adopted, Memory::plain}) {
              // Some have their memory registered, and some have not.
              const Memory own = seed % 3 == world.rank() ? Memory::registered : memory;
              const auto exchange = test::CountedExchange::random(4, most, ++seed);
              test::run_exchange(world, exchange, own, false);
              test::run_exchange(world, exchange, own, true);
              if (::testing::Test::HasFailure()) return world.abort("a test failed");
            }
          }
        },
        std::move(several));
  }
}

TEST_P(TransportConformance, CarriesExchangesWithCountsOfDevices) {
  for (const bool shares : {false, true}) {
    JobOptions late = options();
    late.make_device = [shares] {
      test::LateDeviceOptions device;
      device.shares = shares;
      return std::make_unique<test::LateDevice>(device);
    };
    run(
        3,
        [](Communicator& world) {
          for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            const auto exchange = test::CountedExchange::random(3, seed < 4 ? 2000 : 20'000, seed);
            test::run_exchange(world, exchange, seed % 2 == 0 ? Memory::plain : Memory::registered, seed == 3);
            test::run_exchange_on_device(world, exchange, false);
            test::run_exchange_on_device(world, exchange, true);
            if (::testing::Test::HasFailure()) return world.abort("a test failed");
          }
        },
        std::move(late));
  }
}

TEST_P(TransportConformance, WorksWithADeviceThatIsLate) {
  JobOptions late = options();
  late.make_device = [] { return std::make_unique<test::LateDevice>(); };
  run(
      3,
      [](Communicator& world) {
        for (const CollectiveKind kind : all_collective_kinds) {
          run_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 0, 2000, 2}, Memory::plain, false);
          run_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 0, 2000, 3}, Memory::registered, false);
        }
      },
      std::move(late));
}

/// Memory that only the device reaches, and a caller's queue that fills and empties it.
TEST_P(TransportConformance, CarriesWhatIsInDeviceMemory) {
  JobOptions late = options();
  late.make_device = [] { return std::make_unique<test::LateDevice>(); };
  run(
      3,
      [](Communicator& world) {
        for (const CollectiveKind kind : all_collective_kinds) {
          for (const std::size_t count : {std::size_t{1}, std::size_t{2000}}) {
            test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 0, count, 2});
            if (::testing::Test::HasFailure()) return world.abort("a test failed");
          }
        }
      },
      std::move(late));
}

/// The same where the devices of ranks open each other's memory, as transports within a machine make use of.
TEST_P(TransportConformance, CarriesWhatIsInDeviceMemoryThatOthersOpen) {
  JobOptions late = options();
  late.make_device = [] {
    test::LateDeviceOptions shares;
    shares.shares = true;
    return std::make_unique<test::LateDevice>(shares);
  };
  run(
      3,
      [](Communicator& world) {
        for (const CollectiveKind kind : all_collective_kinds) {
          for (const std::size_t count : {std::size_t{1}, std::size_t{2000}, std::size_t{9000}}) {
            test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 0, count, 2});
            if (::testing::Test::HasFailure()) return world.abort("a test failed");
          }
        }
      },
      std::move(late));
}

/// Of the rings to rank 0, which begin at different ranks, each other rank adds up for others on one at least, in
/// scratch memory: the device's where the buffers are, and made once. The two calls have two buffers on every rank.
TEST_P(TransportConformance, KeepsScratchMemoryWithTheBuffers) {
  std::atomic<std::size_t> allocations = 0;
  JobOptions late = options();
  late.make_device = [&] {
    return std::make_unique<test::LateDevice>(test::LateDeviceOptions{.allocations = &allocations});
  };
  run(
      4,
      [](Communicator& world) {
        const DataCase data{CollectiveKind::reduce, ElementType::int32, ReduceOperation::sum, 4, 0, 2000, 2};
        run_case(world, data, Memory::registered, false);  // Needs none of the device's.
        test::run_device_case(world, data);
        test::run_device_case(world, data);
      },
      std::move(late));
  EXPECT_EQ(allocations, 2U * 2 * 4 + 3);
}

/// What the caller's queue is given after a call has begun waits for its end.
TEST_P(TransportConformance, HoldsTheCallersQueueWhileACallRuns) {
  JobOptions late = options();
  late.make_device = [] { return std::make_unique<test::LateDevice>(); };
  run(
      3,
      [](Communicator& world) {
        constexpr std::size_t count = 3000;
        constexpr std::size_t bytes = count * sizeof(std::int32_t);
        std::vector<std::int32_t> ones(count, 1);
        std::vector<std::int32_t> nines(count, 9);
        std::vector<std::int32_t> data(count);
        std::vector<std::int32_t> sum(count);
        const auto in = [](std::vector<std::int32_t>& values) { return reinterpret_cast<std::byte*>(values.data()); };
        auto queue = world.make_queue();
        ASSERT_TRUE(queue) << queue.error().message;
        (*queue)->copy(in(data), in(ones), bytes);
        CallArguments arguments{CollectiveKind::all_reduce, data.data(),         sum.data(), count,
                                ElementType::int32,         ReduceOperation::sum};
        arguments.queue = queue->get();
        auto handle = world.start(arguments);
        ASSERT_TRUE(handle) << handle.error().message;
        (*queue)->copy(in(data), in(nines), bytes);
        test::await_all(**queue);
        EXPECT_TRUE(handle->test());
        const auto done = handle->wait();
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(sum, std::vector<std::int32_t>(count, 3));
        EXPECT_EQ(data, nines);
      },
      std::move(late));
}

TEST_P(TransportConformance, EndsACallWhoseDeviceFails) {
  JobOptions failing = options();
  failing.make_device = [] { return std::make_unique<test::LateDevice>(test::LateDeviceOptions{.works = 30}); };
  run(
      3,
      [](Communicator& world) {
        std::vector<float> values(2000, 1.0F);
        Result<void> done;
        for (int call = 0; call < 50 && done; ++call) {
          done = world.all_reduce(values.data(), values.data(), 2000, ElementType::float32, ReduceOperation::sum);
        }
        ASSERT_FALSE(done);
        EXPECT_NE(done.error().message.find("the device 'late' failed: it is worn out"), std::string::npos)
            << done.error().message;
      },
      std::move(failing));
}

TEST_P(TransportConformance, EndsACallWhoseDeviceIsStuck) {
  JobOptions stuck = options();
  stuck.timeout = milliseconds(400);
  stuck.make_device = [] {
    return std::make_unique<test::LateDevice>(test::LateDeviceOptions{.works = 30, .sticks = true});
  };
  run(
      2,
      [](Communicator& world) {
        std::vector<float> values(2000, 1.0F);
        Result<void> done;
        for (int call = 0; call < 50 && done; ++call) {
          done = world.all_reduce(values.data(), values.data(), 2000, ElementType::float32, ReduceOperation::sum);
        }
        ASSERT_FALSE(done);
        EXPECT_NE(done.error().message.find("the device 'late' has not finished its work"), std::string::npos)
            << done.error().message;
      },
      std::move(stuck));
}

/// A rank may be ahead of another by some calls; its buffers are its own again when a call has ended.
TEST_P(TransportConformance, LetsRanksBeOutOfStep) {
  run(3, [](Communicator& world) {
    std::vector<std::int32_t> data(2500);
    for (std::int32_t round = 0; round < 60; ++round) {
      const std::uint32_t root = static_cast<std::uint32_t>(round) % 3;
      if (world.rank() == root) std::iota(data.begin(), data.end(), round);
      if (world.rank() == 2 && round % 8 == 0) std::this_thread::sleep_for(milliseconds(2));
      const auto done = world.broadcast(data.data(), data.data(), data.size(), ElementType::int32, root);
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_EQ(data[2499], round + 2499);
      std::ranges::fill(data, -1);  // What was sent has left, or been copied.
    }
  });
}

TEST_P(TransportConformance, ServesGroupsSideBySide) {
  run(4, [&](Communicator& world) {
    const std::uint32_t rank = world.rank();
    std::vector<std::uint32_t> parity = {rank % 2, rank % 2 + 2};
    auto group = world.split(parity, "parity", source_.source());
    ASSERT_TRUE(group) << group.error().message;
    for (std::int32_t round = 1; round < 10; ++round) {
      std::vector<std::int32_t> one(700, round);
      std::vector<std::int32_t> other(700, round);
      std::vector<std::int32_t> sent(300, static_cast<std::int32_t>(rank));
      std::vector<std::int32_t> received(300);
      world.group_begin();
      ASSERT_TRUE(world.all_reduce(one.data(), one.data(), one.size(), ElementType::int32, ReduceOperation::sum));
      ASSERT_TRUE(
          (*group)->all_reduce(other.data(), other.data(), other.size(), ElementType::int32, ReduceOperation::sum));
      ASSERT_TRUE(world.send(sent.data(), sent.size(), ElementType::int32, (rank + 1) % 4));
      ASSERT_TRUE(world.receive(received.data(), received.size(), ElementType::int32, (rank + 3) % 4));
      const auto done = world.group_end();
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(one[699], 4 * round);
      EXPECT_EQ(other[699], 2 * round);
      EXPECT_EQ(received[299], static_cast<std::int32_t>((rank + 3) % 4));
    }
  });
}

/// Who has sent may leave: what it sent arrives all the same.
TEST_P(TransportConformance, DeliversWhatALeavingRankHasSent) {
  run(3, [](Communicator& world) {
    std::vector<std::int32_t> data(4000, world.rank() == 1 ? 7 : 0);
    if (world.rank() == 0) std::this_thread::sleep_for(milliseconds(30));
    const auto done = world.broadcast(data.data(), data.data(), data.size(), ElementType::int32, 1);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(data[3999], 7);
  });
}

TEST_P(TransportConformance, NamesBothCallsWhereRanksDisagree) {
  run(2, [](Communicator& world) {
    std::vector<float> values(64, 1.0F);
    ASSERT_TRUE(world.all_reduce(values.data(), values.data(), 64, ElementType::float32, ReduceOperation::sum));
    const auto operation = world.rank() == 0 ? ReduceOperation::sum : ReduceOperation::max;
    const auto done = world.all_reduce(values.data(), values.data(), 64, ElementType::float32, operation);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("disagree on the operation"), std::string::npos) << done.error().message;
  });
}

TEST_P(TransportConformance, EndsACallThatAMemberDoesNotEnter) {
  JobOptions hasty = options();
  hasty.timeout = milliseconds(400);
  run(
      2,
      [](Communicator& world) {
        std::vector<float> values(64, 1.0F);
        ASSERT_TRUE(world.all_reduce(values.data(), values.data(), 64, ElementType::float32, ReduceOperation::sum));
        if (world.rank() == 1) {
          while (!world.control().has_failed()) std::this_thread::sleep_for(milliseconds(5));
          return;
        }
        const auto done =
            world.all_reduce(values.data(), values.data(), 64, ElementType::float32, ReduceOperation::sum);
        ASSERT_FALSE(done);
        EXPECT_NE(done.error().message.find("rank 1"), std::string::npos) << done.error().message;
      },
      std::move(hasty));
}

TEST_P(TransportConformance, EndsACallThatIsAborted) {
  run(2, [](Communicator& world) {
    std::vector<float> values(64, 1.0F);
    if (world.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      return world.abort("enough");
    }
    const auto begun = std::chrono::steady_clock::now();
    const auto done = world.all_reduce(values.data(), values.data(), 64, ElementType::float32, ReduceOperation::sum);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("enough"), std::string::npos) << done.error().message;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(10000));
  });
}

INSTANTIATE_TEST_SUITE_P(All, TransportConformance, ::testing::ValuesIn(all_transport_cases()),
                         [](const auto& transports) { return std::string(transports.param.name); });

}  // namespace
}  // namespace espalier::engine
