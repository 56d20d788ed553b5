#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace espalier {
namespace {

TEST(RunParallel, DoesEverythingOnce) {
  for (const unsigned threads : {0U, 1U, 2U, 7U, 100U}) {
    std::vector<std::atomic<int>> done(50);
    run_parallel(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    for (const auto& times : done) EXPECT_EQ(times, 1) << threads << " threads";
  }
  run_parallel(0, 4, [](std::size_t) { FAIL() << "there is nothing to do"; });
}

TEST(RunParallel, IsDoneInOrderByOneThread) {
  std::vector<std::size_t> order;
  run_parallel(5, 1, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(RunParallel, UsesSeveralThreads) {
  std::atomic<int> there = 0;
  run_parallel(2, 2, [&](std::size_t) {
    ++there;
    while (there < 2) std::this_thread::yield();  // only another thread can be the second
  });
  EXPECT_EQ(there, 2);
}

TEST(RunParallel, HandsAnExceptionOnAndLeavesTheRestOut) {
  std::atomic<int> begun = 0;
  const auto work = [&](std::size_t i) {
    ++begun;
    if (i == 3) throw std::runtime_error("three");
  };
  EXPECT_THROW(run_parallel(1000, 1, work), std::runtime_error);
  EXPECT_EQ(begun, 4);
  EXPECT_THROW(run_parallel(1000, 3, work), std::runtime_error);
}

}  // namespace
}  // namespace espalier
