// Memory that ranks share is private to children made by fork, whatever the engine does with it at the time.
#include "engine/memory/private_at_fork.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "tests/support/callers_pages.h"

namespace espalier::engine {
namespace {

using test::all_are;
using test::buffer_bytes;
using test::buffer_count;
using test::in_child;
using test::map_buffer;
using test::with_a_rank;

/// A rank with memory of either kind that others share: the communicator's, or the caller's registered.
class SharedBuffer : public testing::TestWithParam<test::Memory> {
 protected:
  void with_a_buffer(std::uint32_t world, const std::function<void(Communicator&, float*)>& body) {
    test::PlannedSource flat("flat");
    run_ranks(world, flat.source(), {}, [&](Communicator& ranks) {
      if (GetParam() == test::Memory::registered) {
        const auto memory = ranks.allocate(buffer_bytes);
        ASSERT_TRUE(memory) << memory.error().message;
        body(ranks, static_cast<float*>(*memory));
        ranks.free(*memory);
        return;
      }
      void* const pages = map_buffer(MAP_PRIVATE);
      const auto registered = ranks.register_buffer(pages, buffer_bytes);
      ASSERT_TRUE(registered) << registered.error().message;
      body(ranks, static_cast<float*>(pages));
      ASSERT_TRUE(ranks.deregister_buffer(pages));
      munmap(pages, buffer_bytes);
    });
  }
};

TEST_P(SharedBuffer, WhatAForkedChildWritesIsItsOwn) {
  with_a_buffer(1, [](Communicator&, float* data) {
    std::fill_n(data, buffer_count, 5.0F);
    for (int fork = 0; fork < 3; ++fork) {
      EXPECT_EQ(in_child([&] {
                  if (!all_are(data, 5.0F)) return 1;
                  std::fill_n(data, buffer_count, 99.0F);
                  return all_are(data, 99.0F) ? 0 : 2;
                }),
                0);
      EXPECT_TRUE(all_are(data, 5.0F));
    }
  });
}

TEST_P(SharedBuffer, AForkedChildKeepsWhatWasThereAtTheFork) {
  with_a_buffer(1, [](Communicator&, float* data) {
    std::array<int, 2> written{};
    ASSERT_EQ(pipe(written.data()), 0);
    std::vector<pid_t> children;
    // The middle two are forked with the same in it.
    for (const float value : {1.0F, 2.0F, 2.0F, 3.0F}) {
      std::fill_n(data, buffer_count, value);
      children.push_back(fork());
      if (children.back() != 0) continue;
      char any = 0;
      close(written[1]);
      while (read(written[0], &any, 1) > 0) {
      }
      const bool is_kept = all_are(data, value);
      data[0] = -1.0F;
      _exit(is_kept && in_child([&] { return data[0] == -1.0F && data[1] == value ? 0 : 1; }) == 0 ? 0 : 1);
    }
    std::fill_n(data, buffer_count, 77.0F);
    close(written[1]);
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    close(written[0]);
    EXPECT_TRUE(all_are(data, 77.0F));
  });
}

TEST_P(SharedBuffer, ForksBesideCallsChangeNoResultAndTearNothingElse) {
  std::atomic<bool> is_over{false};
  with_a_buffer(2, [&](Communicator& ranks, float* data) {
    std::fill_n(data, buffer_count, 5.0F);
    std::thread forker;
    if (ranks.rank() == 0) {
      forker = std::thread([&] {
        for (int fork = 0; fork < 40; ++fork) {
          EXPECT_EQ(in_child([&] {  // No call works on the second half.
                      const bool is_kept = data[buffer_count / 2] == 5.0F && data[buffer_count - 1] == 5.0F;
                      std::fill_n(data, buffer_count, 99.0F);
                      return is_kept ? 0 : 1;
                    }),
                    0);
        }
        is_over = true;
      });
    }
    float wish = 0;  // Both go on until both have seen the end.
    while (wish < 2) {
      data[0] = is_over ? 1.0F : 0.0F;
      std::fill_n(data + 1, buffer_count / 2 - 1, 1.0F);
      ASSERT_TRUE(ranks.all_reduce(data, data, buffer_count / 2, ElementType::float32, ReduceOperation::sum));
      wish = data[0];
      ASSERT_TRUE(data[1] == 2.0F && data[buffer_count / 2 - 1] == 2.0F && data[buffer_count / 2] == 5.0F);
    }
    if (forker.joinable()) forker.join();
  });
}

TEST_P(SharedBuffer, AForkedChildIsNoRankAndChangesNothing) {
  with_a_buffer(2, [](Communicator& ranks, float* data) {
    if (ranks.rank() == 0) {
      EXPECT_EQ(in_child([&] {
                  const bool is_refused = !ranks.allocate(buffer_bytes) && !ranks.deregister_buffer(data) &&
                                          !ranks.register_buffer(data, buffer_bytes);
                  ranks.free(data);
                  ranks.abort("a child ends");
                  return is_refused ? 0 : 1;
                }),
                0);
    }
    std::fill_n(data, buffer_count, 1.0F);
    ASSERT_TRUE(ranks.all_reduce(data, data, buffer_count, ElementType::float32, ReduceOperation::sum));
    EXPECT_TRUE(all_are(data, 2.0F));
  });
}

INSTANTIATE_TEST_SUITE_P(OfEitherKind, SharedBuffer, testing::Values(test::Memory::registered, test::Memory::adopted),
                         [](const auto& info) {
                           return info.param == test::Memory::registered ? "allocated" : "registered";
                         });

TEST(PrivateAtFork, ChildrenInheritNothingOfTheEngines) {
  with_a_rank([](Communicator& ranks) {
    const auto memory = ranks.allocate(buffer_bytes);
    ASSERT_TRUE(memory);
    EXPECT_EQ(in_child([] {
                std::ifstream maps("/proc/self/maps");
                for (std::string line; std::getline(maps, line);) {
                  if (line.find("memfd:espalier") != std::string::npos) return 1;
                }
                return 0;
              }),
              0);
    ranks.free(*memory);
  });
}

}  // namespace
}  // namespace espalier::engine
