// What a queue pair of the transport verbs costs: the time to make and connect one, its memory, and the time of a small
// message, with more and more of them on one device, with a shared receive queue and with one each. Both ends are in
// this process, on one thread. Run it where there is a device: scripts/verbs-vm --
// build/bench/bench/engine/bench_engine_verbs_cost
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/verbs/queue_pair.h"
#include "engine/verbs/verbs_device.h"

namespace espalier::bench {
namespace {

using engine::QueuePair;
using engine::VerbsDevice;
using Clock = std::chrono::steady_clock;

constexpr std::size_t message_bytes = 128;  ///< A frame's header, inline.
constexpr int rounds = 10;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// KiB of a line of a file such as /proc/self/status; 0 without it.
std::int64_t read_kib(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::atoll(line.c_str() + name.size() + 1);
  }
  return 0;
}

template <class T>
T need(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "bench: %s\n", result.error().message.c_str());
  std::exit(1);
}

struct Ends {
  std::unique_ptr<QueuePair> sender;
  std::unique_ptr<QueuePair> receiver;
  std::uint64_t written = 0;
  std::uint64_t returned = 0;
};

void connect(QueuePair& one, const QueuePair& other) {
  if (const auto done = one.connect(other.address()); !done) {
    std::fprintf(stderr, "bench: %s\n", done.error().message.c_str());
    std::exit(1);
  }
}

/// Sends so many messages over the pairs in turn, each pair at most `ahead` of its receiver; seconds for one.
double time_messages(VerbsDevice& device, std::vector<Ends>& pairs, std::size_t messages, std::size_t ahead) {
  const auto begin = Clock::now();
  std::size_t sent = 0;
  std::size_t arrived = 0;
  std::vector<std::uint64_t> seen(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) seen[i] = pairs[i].receiver->received();
  std::size_t next = 0;
  while (arrived < messages) {
    Ends& pair = pairs[next];
    const bool may_send = sent < messages && sent - arrived < ahead && pair.sender->has_room() &&
                          pair.sender->outstanding(pair.written) < engine::slot_count;
    if (may_send) {
      pair.sender->write_slot(pair.written++, message_bytes, std::nullopt, true);
      ++sent;
      next = (next + 1) % pairs.size();
      if (sent - arrived < ahead && sent < messages) continue;
    }
    device.poll();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      Ends& other = pairs[i];
      const std::uint64_t received = other.receiver->received();
      arrived += received - seen[i];
      seen[i] = received;
      if (received - other.returned >= engine::slot_count / 2 && other.receiver->has_room()) {
        other.receiver->send_credits(other.returned = received);
      }
      if (other.sender->failure() || other.receiver->failure()) {
        std::fprintf(stderr, "bench: a connection failed\n");
        std::exit(1);
      }
    }
  }
  return seconds_since(begin) / static_cast<double>(messages);
}

/// The fastest of some rounds, which other work on the machine changes least.
template <class Measure>
double fastest_of(Measure measure) {
  double fastest = measure();
  for (int i = 1; i < rounds; ++i) fastest = std::min(fastest, measure());
  return fastest;
}

void measure(std::uint32_t shared_receives, std::size_t count, std::size_t messages) {
  engine::VerbsOptions options;
  options.shared_receives = shared_receives;
  const auto device = need(VerbsDevice::open("", options));
  const std::int64_t pinned = read_kib("/proc/self/status", "VmPin");
  const std::int64_t available = read_kib("/proc/meminfo", "MemAvailable");
  std::vector<Ends> pairs(count);
  double made = 1e9;
  for (Ends& pair : pairs) {
    const auto begin = Clock::now();
    pair.sender = need(QueuePair::create(*device, options));
    pair.receiver = need(QueuePair::create(*device, options));
    connect(*pair.receiver, *pair.sender);
    connect(*pair.sender, *pair.receiver);
    made = std::min(made, seconds_since(begin) / 2);
  }
  const auto of_each = [&](std::int64_t kib) { return static_cast<double>(kib) / static_cast<double>(2 * count); };
  const double pin = of_each(read_kib("/proc/self/status", "VmPin") - pinned);
  const double memory = of_each(available - read_kib("/proc/meminfo", "MemAvailable"));
  const double one = fastest_of([&] { return time_messages(*device, pairs, messages, 1); });
  const double many = fastest_of([&] { return time_messages(*device, pairs, messages, 8); });
  std::printf("| %s | %zu | %.2f ms | %.0f KiB | %.0f KiB | %.1f us | %.1f us |\n",
              device->shared_receives() != nullptr ? "shared" : "own", 2 * count, made * 1e3, pin, memory, one * 1e6,
              many * 1e6);
  std::fflush(stdout);
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  const std::size_t messages = argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : 400;
  std::puts("| receive queue | queue pairs | made, connected in | pinned | memory less | message | of 8 under way |");
  std::puts("|---|---|---|---|---|---|---|");
  for (const std::size_t count : {1U, 8U, 64U, 256U}) {
    for (const std::uint32_t shared : {0U, espalier::engine::VerbsOptions{}.shared_receives}) {
      espalier::bench::measure(shared, count, messages);
    }
  }
  return 0;
}
