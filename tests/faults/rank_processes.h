#pragma once

#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/send_signal.h"
#include "engine/communicator/communicator.h"
#include "engine/executor/clock.h"
#include "engine/rendezvous/wire/listener.h"
#include "tests/support/engine_cases.h"

namespace espalier::test {

/// A port that nobody listens on, below those that the system deals out: no test that runs beside this one gets it.
inline std::uint16_t quiet_port() {
  constexpr int first = 20'000;
  constexpr int count = 8'000;
  for (int i = 0; i < count; ++i) {
    const auto port = static_cast<std::uint16_t>(first + (getpid() * 13 + i) % count);
    if (engine::rendezvous::listen_on("127.0.0.1", port)) return port;
  }
  return 0;
}

/// How many names of ours there are in /dev/shm.
inline std::size_t shared_memory_names() {
  std::size_t count = 0;
  DIR* folder = opendir("/dev/shm");
  while (const dirent* entry = folder != nullptr ? readdir(folder) : nullptr) {
    if (std::string_view(entry->d_name).find("espalier") != std::string_view::npos) ++count;
  }
  if (folder != nullptr) closedir(folder);
  return count;
}

/// What a rank tells the test, in memory that both map: it stays when the rank is killed.
struct RankReport {
  std::atomic<std::uint64_t> calls;        ///< That succeeded.
  std::atomic<std::int64_t> failed_at_ns;  ///< When an error came; 0 while none did.
  std::atomic<std::uint32_t> phase;        ///< As the body says.
  std::array<char, 4096> message;          ///< Of the error, and its help.

  void fail_with(const Error& error) {
    const std::string text = error.message + " | " + error.help;
    std::memcpy(message.data(), text.data(), std::min(text.size(), message.size() - 1));
    failed_at_ns.store(engine::now_ns());
  }
};

/// A job whose ranks are processes, which the test may kill and stop. They die with the test.
class RankProcesses {
 public:
  struct Rank {
    std::uint32_t rank = 0;
    JobOptions options;
    RankReport* report = nullptr;
  };
  /// Runs in each process; what it returns is the exit code.
  using Body = std::function<int(Rank&&)>;

  RankProcesses(std::uint32_t world, const JobOptions& options, const Body& body) : children_(world) {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    reports_ = static_cast<RankReport*>(memory);
    auto listener = engine::rendezvous::listen_on("127.0.0.1", options.rendezvous.port);
    if (!listener) return;
    port_ = listener->port;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const pid_t parent = getpid();
      children_[rank] = fork();
      if (children_[rank] != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(99);
      std::ofstream("/proc/self/oom_score_adj") << 1000;  // A test that takes too much should hurt itself first.
      Rank own{rank, {}, &reports_[rank]};
      own.options.transport = options.transport;
      own.options.timeout = options.timeout;
      own.options.checksum = options.checksum;
      own.options.rendezvous.timeout = options.rendezvous.timeout;
      own.options.rendezvous.host = "127.0.0.1";
      own.options.rendezvous.port = port_;
      own.options.rendezvous.rank = rank;
      own.options.rendezvous.world = world;
      own.options.rendezvous.secret = "a secret of this test";
      if (rank == 0) {
        own.options.rendezvous.listener = std::move(*listener);
      } else {
        listener->fd.reset();
      }
      _exit(body(std::move(own)));
    }
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses() {
    for (const pid_t child : children_) {
      send_signal(child, SIGKILL);
    }
    for (const pid_t child : children_) {
      if (child > 0) waitpid(child, nullptr, 0);
    }
    munmap(reports_, bytes());
  }

  [[nodiscard]] RankReport& report(std::uint32_t rank) { return reports_[rank]; }
  [[nodiscard]] std::string message(std::uint32_t rank) const { return reports_[rank].message.data(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t process(std::uint32_t rank) const { return children_[rank]; }
  /// Requires: its exit code was not asked for.
  void signal(std::uint32_t rank, int number) const { send_signal(children_[rank], number); }

  /// Waits until something holds; false after the time.
  static bool await(const std::function<bool()>& holds, std::chrono::milliseconds longest) {
    const auto deadline = std::chrono::steady_clock::now() + longest;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  /// Waits until every rank has made this many calls.
  bool await_calls(std::uint64_t calls, std::chrono::milliseconds longest = std::chrono::milliseconds(30000)) {
    return await(
        [&] {
          for (std::size_t i = 0; i < children_.size(); ++i) {
            if (reports_[i].calls.load() < calls && reports_[i].failed_at_ns.load() == 0) return false;
          }
          return true;
        },
        longest);
  }
  /// The exit code of a rank that ended, 128 + signal when one ended it; -1 when it has not ended after the time.
  int exit_code(std::uint32_t rank, std::chrono::milliseconds longest = std::chrono::milliseconds(30000)) {
    int status = 0;
    pid_t ended = 0;
    await([&] { return (ended = waitpid(children_[rank], &status, WNOHANG)) != 0; }, longest);
    if (ended != children_[rank]) return -1;
    children_[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return children_.size() * sizeof(RankReport); }

  std::vector<pid_t> children_;
  RankReport* reports_ = nullptr;
  std::uint16_t port_ = 0;
};

/// A body that joins and calls one collective over and over until it fails; it then exits with 7.
inline int call_until_failure(RankProcesses::Rank&& own, CollectiveKind kind, std::size_t count, Memory memory) {
  PlannedSource source("ring", Bytes{4096});
  auto joined = Communicator::join(std::move(own.options), source.source());
  if (!joined) {
    own.report->fail_with(joined.error());
    return 6;
  }
  Communicator& communicator = **joined;
  const engine::DataCase data{kind, ElementType::float32, ReduceOperation::sum, communicator.size(), 0, count, 3};
  const std::size_t room = std::max(data.send_count(own.rank), data.receive_count(own.rank)) * sizeof(float) + 64;
  std::vector<float> plain(2 * room / sizeof(float));
  auto* base = reinterpret_cast<std::byte*>(plain.data());
  if (memory == Memory::registered) {
    auto allocated = communicator.allocate(2 * room);
    if (!allocated) {
      own.report->fail_with(allocated.error());
      return 5;
    }
    base = static_cast<std::byte*>(*allocated);
  }
  engine::fill_send_buffer(data, own.rank, base);
  while (true) {
    const auto done = communicator.run({kind, base, base + room, count, data.type, data.operation, 0});
    if (!done) {
      own.report->fail_with(done.error());
      return 7;
    }
    if (engine::check_receive_buffer(data, own.rank, base + room).wrong != 0) return 8;
    own.report->calls.fetch_add(1);
  }
}

}  // namespace espalier::test
