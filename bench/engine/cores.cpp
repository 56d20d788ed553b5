// How fast two cores hand data to each other right now: a virtual machine's cores move between places that share a
// cache and places that do not, which changes every engine's figures but the oracle's, whose threads share nothing.
// Prints one line of JSON: the time of a flag one way, and the rates at which one core writes over what the other has
// just read and copies what the other has just written.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "bench/engine/harness.h"

namespace espalier::bench {
namespace {

constexpr std::uint32_t rounds = 2000;
constexpr std::size_t elements = 64 << 10;  // 256 KiB, in one core's cache

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Exchange {
  alignas(128) std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> pinned{0};
  Array written{elements};
  Array copied{elements};
  double flag_ns = 0;
  std::vector<double> write_ns;
  std::vector<double> copy_ns;

  /// Even turns are the first core's, odd ones the second's.
  void await(std::uint32_t wanted) const {
    while (turn.load(std::memory_order_acquire) != wanted) continue;
  }

  void run(std::uint32_t self) {
    pin_to_core(self);
    pinned.fetch_add(1);
    while (pinned.load() < 2) continue;
    const double begin = now_ns();
    for (std::uint32_t i = self; i < rounds; i += 2) {
      await(i);
      turn.store(i + 1, std::memory_order_release);
    }
    if (self == 0) flag_ns = (now_ns() - begin) / rounds;
    for (std::uint32_t i = rounds + self; i < rounds + 200; i += 2) {
      await(i);
      const double start = now_ns();
      if (self == 0) {
        std::memset(written.data(), static_cast<int>(i % 100), elements * sizeof(float));
        write_ns.push_back(now_ns() - start);
      } else {
        std::memcpy(copied.data(), written.data(), elements * sizeof(float));
        copy_ns.push_back(now_ns() - start);
      }
      turn.store(i + 1, std::memory_order_release);
    }
  }
};

double rate_of(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return elements * sizeof(float) / *middle;
}

}  // namespace
}  // namespace espalier::bench

int main() {
  espalier::bench::Exchange exchange;
  std::thread second([&exchange] { exchange.run(1); });
  std::thread first([&exchange] { exchange.run(0); });
  first.join();
  second.join();
  std::printf("{\"engine\": \"cores\", \"flag_ns\": %.0f, \"write_gb_per_s\": %.1f, \"copy_gb_per_s\": %.1f}\n",
              exchange.flag_ns, espalier::bench::rate_of(exchange.write_ns),
              espalier::bench::rate_of(exchange.copy_ns));
  return 0;
}
