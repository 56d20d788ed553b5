// Every type with every operation, and every count, over each path that bytes take.
#include <gtest/gtest.h>

#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

using test::Memory;
using test::PlannedSource;
using test::run_case;

struct DataPath {
  const char* name;
  TransportChoice transport;
  Memory memory;
};

class EveryDataPath : public ::testing::TestWithParam<DataPath> {
 protected:
  /// Runs the body as each of the ranks of a job whose schedules the planner makes.
  void run(std::uint32_t ranks, const char* planner, const std::function<void(Communicator&)>& body) {
    PlannedSource source(planner, Bytes{256});
    JobOptions options;
    options.transport = GetParam().transport;
    run_ranks(ranks, source.source(), std::move(options), body);
  }
};

TEST_P(EveryDataPath, AddsEveryTypeWithEveryOperation) {
  run(3, "flat", [](Communicator& communicator) {
    for (const ElementType type : all_element_types) {
      for (const ReduceOperation operation : all_reduce_operations) {
        for (const std::size_t count : {0U, 1U, 7U, 1000U}) {
          for (const bool in_place : {false, true}) {
            run_case(communicator, {CollectiveKind::all_reduce, type, operation, 3, 0, count, count}, GetParam().memory,
                     in_place);
          }
        }
      }
    }
  });
}

TEST_P(EveryDataPath, ReducesToARootAndToShardsInEveryType) {
  run(4, "ring", [](Communicator& communicator) {
    for (const ElementType type : all_element_types) {
      for (const ReduceOperation operation : all_reduce_operations) {
        run_case(communicator, {CollectiveKind::reduce, type, operation, 4, 2, 333, 1}, GetParam().memory, false);
        run_case(communicator, {CollectiveKind::reduce_scatter, type, operation, 4, 0, 333, 2}, GetParam().memory,
                 false);
      }
    }
  });
}

/// Rank 1 sends nothing, nobody sends to rank 2 but itself, and a block of one part of a thousand keeps an element.
TEST_P(EveryDataPath, MovesBlocksOfATrafficMatrix) {
  for (const char* const planner : {"flat", "pairwise", "lp"}) {
    run(4, planner, [](Communicator& communicator) {
      for (const ElementType type : {ElementType::int8, ElementType::float64}) {
        for (const std::size_t count : {0U, 1U, 7U, 1000U, 5000U}) {
          const DataCase data{CollectiveKind::all_to_all,
                              type,
                              ReduceOperation::sum,
                              4,
                              0,
                              count,
                              count,
                              {0, 999, 0, 1, 0, 0, 0, 0, 5, 7, 100, 300, 250, 0, 0, 3}};
          run_case(communicator, data, GetParam().memory, false);
        }
      }
    });
  }
}

TEST_P(EveryDataPath, MovesEveryCount) {
  run(3, "ring", [](Communicator& communicator) {
    for (const CollectiveKind kind : all_collective_kinds) {
      for (std::size_t count = 0; count < 14; ++count) {
        for (std::uint32_t root = 0; root < (has_root(kind) ? 3U : 1U); ++root) {
          run_case(communicator, {kind, ElementType::int8, ReduceOperation::sum, 3, root, count, 5}, GetParam().memory,
                   count % 2 == 0);
        }
      }
    }
  });
}

TEST_P(EveryDataPath, TakesBuffersAtOddAddresses) {
  run(2, "flat", [](Communicator& communicator) {
    constexpr std::size_t count = 10'007;
    std::vector<std::byte> plain(2 * (count + 1) * sizeof(float));
    std::byte* base = plain.data();
    if (GetParam().memory == Memory::registered) {
      const auto memory = communicator.allocate(plain.size());
      ASSERT_TRUE(memory);
      base = static_cast<std::byte*>(*memory);
    }
    const DataCase data{CollectiveKind::all_reduce, ElementType::float32, ReduceOperation::sum, 2, 0, count, 0};
    std::byte* send = base + 1;
    std::byte* receive = base + count * sizeof(float) + 3;
    std::vector<float> aligned(count);
    fill_send_buffer(data, communicator.rank(), aligned.data());
    std::memcpy(send, aligned.data(), count * sizeof(float));
    const auto done = communicator.all_reduce(send, receive, count, ElementType::float32, ReduceOperation::sum);
    ASSERT_TRUE(done) << done.error().message;
    std::memcpy(aligned.data(), receive, count * sizeof(float));
    EXPECT_EQ(check_receive_buffer(data, communicator.rank(), aligned.data()).wrong, 0U);
  });
}

/// A buffer that was freed and another that lies in its place are never taken for each other.
TEST_P(EveryDataPath, NeverReadsABufferThatWasThereBefore) {
  run(2, "flat", [](Communicator& communicator) {
    for (std::size_t round = 0; round < 50; ++round) {
      const std::size_t count = round % 3 == 0 ? 5000 : 300;
      run_case(communicator, {CollectiveKind::all_reduce, ElementType::int32, ReduceOperation::sum, 2, 0, count, round},
               round % 5 == 4 ? Memory::plain : GetParam().memory, round % 2 == 0);
    }
  });
}

/// Pairs of ranks that agree on nothing but the call: one in registered memory, one in plain memory.
TEST_P(EveryDataPath, RanksMayHaveDifferentKindsOfMemory) {
  run(3, "flat", [](Communicator& communicator) {
    for (std::uint32_t plain_ranks = 0; plain_ranks < 8; ++plain_ranks) {
      const bool is_plain = (plain_ranks >> communicator.rank() & 1U) != 0;
      for (const CollectiveKind kind : all_collective_kinds) {
        const DataCase data{kind, ElementType::uint32, ReduceOperation::sum, 3, 0, 1500, plain_ranks};
        const bool in_place = data.in_place_shift(0) && (communicator.rank() + plain_ranks) % 2 == 0;
        run_case(communicator, data, is_plain ? Memory::plain : Memory::registered, in_place);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(DataPaths, EveryDataPath,
                         ::testing::Values(DataPath{"shmRegistered", TransportChoice::shm, Memory::registered},
                                           DataPath{"shmAdopted", TransportChoice::shm, Memory::adopted},
                                           DataPath{"shmPlain", TransportChoice::shm, Memory::plain},
                                           DataPath{"tcp", TransportChoice::tcp, Memory::plain}),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace espalier::engine
