// Small all_reduces that the engine may replace by one exchange of all inputs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "engine/shm/control.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/late_device.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

using test::Memory;
using test::PlannedSource;
using test::run_case;

/// Plans whose schedules need not be run themselves, as the advisor's.
ScheduleSource replaceable(PlannedSource& planned) {
  return [source = planned.source()](const Collective& collective, Bytes size) {
    auto sourced = source(collective, size);
    if (sourced) sourced->may_be_replaced = true;
    return sourced;
  };
}

JobOptions in_memory() {
  JobOptions options;
  options.transport = TransportChoice::shm;
  options.timeout = std::chrono::milliseconds(20000);
  return options;
}

DataCase sum_of_floats(std::uint32_t ranks, std::int64_t bytes, std::uint64_t seed) {
  DataCase data;
  data.ranks = ranks;
  data.count = static_cast<std::size_t>(bytes / size_of(data.type));
  data.seed = seed;
  return data;
}

TEST(Exchange, IsRightOnBothSidesOfItsLimitAndRoundTheRing) {
  for (const std::uint32_t ranks : {2U, 3U, 5U, 8U}) {
    PlannedSource planned("flat");
    run_ranks(ranks, replaceable(planned), in_memory(), [&](Communicator& communicator) {
      const std::int64_t limit = engine::max_shown_bytes_of(ranks);
      std::uint64_t seed = 0;
      for (const std::int64_t bytes :
           {std::int64_t{4}, std::int64_t{60}, std::int64_t{68}, limit - 4, limit, limit + 4}) {
        run_case(communicator, sum_of_floats(ranks, bytes, ++seed), Memory::plain, true);
        run_case(communicator, sum_of_floats(ranks, bytes, ++seed), Memory::registered, false);
      }
      // The largest inputs, each other than the one before: three times as many as the ring holds.
      const std::int64_t calls = 3 * engine::shown_inputs_bytes / limit;
      for (std::int64_t i = 0; i < calls; ++i) {
        run_case(communicator, sum_of_floats(ranks, limit, ++seed), Memory::plain, i % 2 == 0);
        if (::testing::Test::HasFailure()) return communicator.abort("a test failed");
      }
    });
  }
}

TEST(Exchange, CarriesAllToAllsOnBothSidesOfItsLimit) {
  for (const std::uint32_t ranks : {2U, 3U, 8U}) {
    PlannedSource planned("pairwise");
    run_ranks(ranks, replaceable(planned), in_memory(), [&](Communicator& communicator) {
      const std::int64_t limit = engine::max_shown_bytes_of(ranks);
      std::uint64_t seed = 0;
      for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{64}, limit / 2, limit, limit + 4096}) {
        DataCase data = sum_of_floats(ranks, bytes, ++seed);
        data.kind = CollectiveKind::all_to_all;
        data.count = (data.count + ranks - 1) / ranks * ranks;
        for (int i = 0; i < 12; ++i) run_case(communicator, data, Memory::plain, false);
        run_case(communicator, data, Memory::registered, false);
        if (::testing::Test::HasFailure()) return communicator.abort("a test failed");
      }
    });
  }
}

TEST(Exchange, GoesBlockByBlockWhereMemoryIsPrivate) {
  for (const std::uint32_t ranks : {3U, 5U, 8U}) {
    PlannedSource planned("flat");
    run_ranks(ranks, replaceable(planned), in_memory(), [&](Communicator& communicator) {
      const std::int64_t limit = engine::max_shown_bytes_of(ranks);
      const std::int64_t block = engine::exchanged_block_bytes(ranks);
      std::uint64_t seed = 0;
      // Less than a line for each rank more than an exchange takes; one block and two; more blocks than there are
      // places.
      for (const std::int64_t bytes : {limit + 4, 3 * limit + 12, block, block + 4, 6 * block + 20}) {
        const Memory one = communicator.rank() == 1 ? Memory::registered : Memory::plain;
        run_case(communicator, sum_of_floats(ranks, bytes, ++seed), Memory::plain, true);
        run_case(communicator, sum_of_floats(ranks, bytes, ++seed), one, false);
        run_case(communicator, sum_of_floats(ranks, bytes, ++seed), Memory::registered, true);
        if (::testing::Test::HasFailure()) return communicator.abort("a test failed");
      }
      for (int i = 0; i < 20; ++i) run_case(communicator, sum_of_floats(ranks, 50'000, ++seed), Memory::plain, true);
    });
  }
}

TEST(Exchange, IsOfPrivateMemoryAloneBetweenTwoWhereItIsLarger) {
  PlannedSource planned("flat");
  for (const bool is_late : {false, true}) {
    JobOptions options = in_memory();
    if (is_late) options.make_device = [] { return std::make_unique<test::LateDevice>(); };
    run_ranks(2, replaceable(planned), std::move(options), [&](Communicator& communicator) {
      const std::int64_t least = engine::max_shown_bytes_of(2);
      const std::int64_t most = engine::max_private_shown_bytes;
      const auto registered_on = [&](std::uint32_t rank) {
        return communicator.rank() == rank ? Memory::registered : Memory::plain;
      };
      std::uint64_t seed = 0;
      // The ring turns, with inputs in it that were shown and those that the streams took the place of.
      const std::int64_t rounds = is_late ? 2 : engine::shown_inputs_bytes / most;
      for (std::int64_t round = 0; round < rounds; ++round) {
        for (const std::int64_t bytes : {least, least + 4, std::int64_t{12'004}, most - 4, most, most + 4}) {
          const bool in_place = round % 2 == 0;
          run_case(communicator, sum_of_floats(2, bytes, ++seed), Memory::plain, in_place);
          run_case(communicator, sum_of_floats(2, bytes, ++seed), registered_on(0), in_place);
          run_case(communicator, sum_of_floats(2, bytes, ++seed), registered_on(1), in_place);
          run_case(communicator, sum_of_floats(2, bytes, ++seed), Memory::registered, in_place);
          if (::testing::Test::HasFailure()) return communicator.abort("a test failed");
        }
      }
    });
  }
}

TEST(Exchange, AddsEveryTypeWithEveryOperation) {
  PlannedSource planned("star");
  run_ranks(4, replaceable(planned), in_memory(), [&](Communicator& communicator) {
    for (const ElementType type : all_element_types) {
      for (const ReduceOperation operation : all_reduce_operations) {
        DataCase data;
        data.ranks = 4;
        data.type = type;
        data.operation = operation;
        for (const std::size_t count : {std::size_t{77}, std::size_t{20'001}}) {  // At once, and as a block.
          data.count = count;
          run_case(communicator, data, Memory::plain, true);
          run_case(communicator, data, Memory::plain, false);
        }
      }
    }
  });
}

TEST(Exchange, GivesAllRanksTheSameBits) {
  // Sums whose rounding depends on the order. Floats from 1 on are 2^-23 apart, and ties go to the even one.
  PlannedSource planned("flat");
  std::array<std::vector<float>, 4> results;
  run_ranks(4, replaceable(planned), in_memory(), [&](Communicator& communicator) {
    std::vector<float> values(9);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = communicator.rank() == i % 4 ? 1.0F : 0x1p-24F;
    }
    ASSERT_TRUE(communicator.all_reduce(values.data(), values.data(), values.size(), ElementType::float32,
                                        ReduceOperation::sum));
    results[communicator.rank()] = values;
  });
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(std::memcmp(results[rank].data(), results[0].data(), sizeof(float) * results[0].size()), 0);
  }
  // In the order of the ranks: 1 + 2^-24 is a tie that falls back to 1, three times; but 3 x 2^-24 is exact, and
  // beside 1 a tie between 1 + 2^-23 and 1 + 2^-22, which is the even one.
  EXPECT_EQ(results[0][0], 1.0F);
  EXPECT_EQ(results[0][3], 1.0F + 0x1p-22F);
}

TEST(Exchange, MixesWithCallsThatAreNoExchangeAndWithGroups) {
  PlannedSource planned("flat");
  run_ranks(3, replaceable(planned), in_memory(), [&](Communicator& world) {
    const std::array<std::uint32_t, 2> pair = {0, 2};
    std::unique_ptr<Communicator> group;
    if (world.rank() != 1) {
      auto made = world.split(pair, "pair", replaceable(planned));
      ASSERT_TRUE(made) << made.error().message;
      group = std::move(*made);
    }
    for (std::uint64_t i = 0; i < 40; ++i) {
      run_case(world, sum_of_floats(3, 8, i), Memory::plain, true);
      run_case(world, sum_of_floats(3, 100'000, i), Memory::plain, true);
      if (group) run_case(*group, sum_of_floats(2, 400, i), Memory::registered, true);
      if (::testing::Test::HasFailure()) return world.abort("a test failed");
    }
    std::vector<float> one(4, 1.0F);
    std::vector<float> other(4, 2.0F);
    world.group_begin();
    ASSERT_TRUE(world.all_reduce(one.data(), one.data(), 4, ElementType::float32, ReduceOperation::sum));
    if (group) {
      ASSERT_TRUE(group->all_reduce(other.data(), other.data(), 4, ElementType::float32, ReduceOperation::sum));
    }
    ASSERT_TRUE(world.group_end());
    EXPECT_EQ(one[3], 3.0F);
    EXPECT_EQ(other[3], group ? 4.0F : 2.0F);
  });
}

TEST(Exchange, WaitsForADeviceThatIsLate) {
  PlannedSource planned("flat");
  JobOptions options = in_memory();
  options.make_device = [] { return std::make_unique<test::LateDevice>(); };
  run_ranks(3, replaceable(planned), std::move(options), [](Communicator& communicator) {
    for (std::uint64_t i = 0; i < 30; ++i) {
      run_case(communicator, sum_of_floats(3, 1000, i), Memory::plain, i % 2 == 0);
      run_case(communicator, sum_of_floats(3, 100'000, i), Memory::plain, i % 2 == 0);
    }
    run_case(communicator, sum_of_floats(3, 6'000'000, 1), Memory::plain, true);
    for (const std::int64_t bytes : {64, 1000, 100'000}) {
      test::run_device_case(communicator, sum_of_floats(3, bytes, 2));
    }
  });
}

/// The device need not be done with one sum before it is given the next.
TEST(LateDevices, HaveSeveralReductionsAtATime) {
  for (const Memory memory : {Memory::plain, Memory::registered}) {
    PlannedSource planned("ring", Bytes{1024});
    std::atomic<std::size_t> most = 0;
    JobOptions options = in_memory();
    options.make_device = [&] {
      return std::make_unique<test::LateDevice>(test::LateDeviceOptions{.max_reductions = &most});
    };
    run_ranks(4, planned.source(), std::move(options), [&](Communicator& communicator) {
      for (std::uint64_t i = 0; i < 5; ++i) run_case(communicator, sum_of_floats(4, 200'000, i), memory, true);
    });
    EXPECT_GT(most.load(), 1U);
  }
}

TEST(Exchange, NamesBothCallsWhereRanksDisagree) {
  PlannedSource planned("flat");
  run_ranks(2, replaceable(planned), in_memory(), [](Communicator& communicator) {
    std::vector<float> values(8, 1.0F);
    ASSERT_TRUE(communicator.all_reduce(values.data(), values.data(), 8, ElementType::float32, ReduceOperation::sum));
    const auto operation = communicator.rank() == 0 ? ReduceOperation::sum : ReduceOperation::max;
    const auto done = communicator.all_reduce(values.data(), values.data(), 8, ElementType::float32, operation);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("disagree"), std::string::npos) << done.error().message;
  });
}

TEST(Exchange, NamesWhoDoesNotCome) {
  PlannedSource planned("flat");
  JobOptions options = in_memory();
  options.timeout = std::chrono::milliseconds(300);
  run_ranks(3, replaceable(planned), std::move(options), [](Communicator& communicator) {
    if (communicator.rank() == 1) {
      // Waits elsewhere, so that it is there but not in the call, until the others have given up.
      while (!communicator.control().has_failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    float value = 1;
    const auto done = communicator.all_reduce(&value, &value, 1, ElementType::float32, ReduceOperation::sum);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("rank 1"), std::string::npos) << done.error().message;
  });
}

}  // namespace
}  // namespace espalier::engine
