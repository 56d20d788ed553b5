#include "engine/shm/doorbell.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace espalier::engine {
namespace {

using std::chrono::steady_clock;

/// Two threads take turns; each announces itself, looks, and sleeps. A ring that was lost would leave both asleep until
/// the sleep's end, which is far longer than any machine is busy.
TEST(Doorbell, LosesNoWake) {
  constexpr std::uint32_t turns = 20000;
  constexpr std::chrono::seconds longest_sleep{20};
  std::array<Doorbell, 2> bells;
  std::atomic<std::uint32_t> turn = 0;
  std::atomic<std::uint32_t> lost = 0;
  const auto play = [&](std::uint32_t self) {
    for (std::uint32_t mine = self; mine < turns && lost == 0; mine += 2) {
      while (turn.load(std::memory_order_acquire) != mine && lost == 0) {
        const std::uint32_t announced = bells[self].announce();
        if (turn.load(std::memory_order_acquire) != mine) {
          const auto begun = steady_clock::now();
          bells[self].sleep(announced, longest_sleep);
          if (steady_clock::now() - begun >= longest_sleep) ++lost;
        }
        bells[self].withdraw();
      }
      turn.store(mine + 1, std::memory_order_release);
      bells[1 - self].ring();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace espalier::engine
