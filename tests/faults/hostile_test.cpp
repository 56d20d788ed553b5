// Who does not know the secret and means harm: floods of frames and of connections. Rank 0's memory and descriptors
// stay bounded, and ranks of the job still come in.
#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <fstream>

#include "engine/rendezvous/wire/link.h"
#include "engine/rendezvous/wire/messages.h"
#include "engine/tcp/greeting.h"
#include "engine/tcp/tcp_mesh.h"
#include "tests/faults/rank_processes.h"
#include "tests/support/sanitized.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using test::call_until_failure;
using test::Memory;
using test::RankProcesses;

constexpr bool is_sanitized = ESPALIER_SANITIZED != 0;

/// A connection from another address of this machine's loopback network than the ranks'.
FileDescriptor connect_to(std::uint16_t port, std::uint32_t last_byte = 1) {
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl((127U << 24U) + last_byte);
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

/// A number of /proc/PROCESS/status, such as VmHWM in kB; 0 when the process is gone.
std::int64_t status_of(pid_t process, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string word; file >> word;) {
    std::int64_t number = 0;
    if (word == name + ":" && file >> number) return number;
  }
  return 0;
}

std::size_t descriptors_of(pid_t process) {
  DIR* folder = opendir(("/proc/" + std::to_string(process) + "/fd").c_str());
  if (folder == nullptr) return 0;
  std::size_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count - 2;  // Without "." and "..".
}

/// A well-formed claim with a wrong code, as a frame.
std::string hostile_frame() {
  const std::string payload = engine::rendezvous::encode(
      engine::rendezvous::Claim{engine::rendezvous::protocol_version, 1, 2, "", "host x, process 1", {}, {}});
  return engine::rendezvous::frame_header(engine::rendezvous::FrameType::claim, payload.size()) + payload;
}

/// Sends frames until so many are sent or the other end takes no more; how many went.
std::size_t flood(const FileDescriptor& fd, const std::string& frame, std::size_t frames) {
  constexpr std::size_t at_once = 512;
  std::string many;
  for (std::size_t i = 0; i < at_once; ++i) many += frame;
  std::size_t sent = 0;
  while (sent / frame.size() < frames) {
    const ssize_t count = ::send(fd.get(), many.data(), many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
      continue;
    }
    // The far end may still be reading. It is given time, for a test that went on at once would prove nothing.
    pollfd entry{fd.get(), POLLOUT, 0};
    if (errno != EAGAIN || poll(&entry, 1, 50) != 1 || (entry.revents & (POLLERR | POLLHUP)) != 0) break;
  }
  return sent / frame.size();
}

JobOptions options_of(TransportChoice transport) {
  JobOptions options;
  options.transport = transport;
  options.timeout = milliseconds(20000);
  options.rendezvous.timeout = milliseconds(20000);
  return options;
}

/// Far more than places for connections cost, far less than what is sent.
constexpr std::int64_t allowed_growth_kb = 16 << 10;
/// Places for connections (256 and one per rank), and what a rank has open anyway.
constexpr std::size_t max_descriptors = 256 + 2 + 64;

class Hostile : public ::testing::Test {
 protected:
  /// A million frames that claim with a wrong code, over as many connections as it takes; how many it took.
  static std::size_t send_a_million(std::uint16_t port) {
    const std::string frame = hostile_frame();
    std::size_t connections = 0;
    std::vector<FileDescriptor> open;  // Nobody hangs up: what the other end keeps of them, it keeps.
    for (std::size_t sent = 0; sent < 1'000'000; ++connections) {
      open.push_back(connect_to(port));
      if (!open.back().is_open()) break;
      sent += flood(open.back(), frame, 1'000'000 - sent);
    }
    return connections;
  }

  static void expect_alive(RankProcesses& ranks) {
    EXPECT_TRUE(ranks.await_calls(ranks.report(0).calls.load() + 20));
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0) << ranks.message(rank);
    }
  }
};

/// 127 MB of them, of which rank 0 reads the first of each connection.
TEST_F(Hostile, AMillionFramesLeaveRank0sMemoryFlat) {
  RankProcesses ranks(2, options_of(TransportChoice::shm), [](RankProcesses::Rank&& own) {
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::plain);
  });
  ASSERT_TRUE(ranks.await_calls(3));
  const std::int64_t before = status_of(ranks.process(0), "VmHWM");
  ASSERT_GT(before, 0);
  send_a_million(ranks.port());
  const std::int64_t after = status_of(ranks.process(0), "VmHWM");
  RecordProperty("growth_kb", std::to_string(after - before));
  EXPECT_LT(after - before, allowed_growth_kb);
  expect_alive(ranks);
}

/// As above, where rank 0 may have 64 MB more than it has: what the frames would take.
TEST_F(Hostile, AMillionFramesDoNotExhaustALimitedRank0) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer's shadow memory needs the address space";
  RankProcesses ranks(2, options_of(TransportChoice::shm), [](RankProcesses::Rank&& own) {
    if (own.rank == 0) {
      const auto bytes = static_cast<rlim_t>(status_of(getpid(), "VmSize") + (64 << 10)) * 1024;
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_AS, &limit);
    }
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::plain);
  });
  ASSERT_TRUE(ranks.await_calls(3));
  send_a_million(ranks.port());
  expect_alive(ranks);
}

/// Ten thousand connections that say nothing, and a stream of new ones, while a rank of the job comes: it gets in.
class Pending : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Pending, TenThousandConnectionsKeepNoRankOut) {
  constexpr std::size_t wanted = 10'000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t count = std::min<std::size_t>(wanted, files.rlim_max - 500);
  if (count < wanted) std::printf("only %zu connections: raise the hard limit of open files\n", count);

  RankProcesses ranks(2, options_of(TransportChoice::shm), [](RankProcesses::Rank&& own) {
    if (own.rank == 1) {
      while (own.report->phase.load() == 0) std::this_thread::sleep_for(milliseconds(1));
    }
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::plain);
  });
  ASSERT_TRUE(RankProcesses::await([&] { return descriptors_of(ranks.process(0)) > 4; }, milliseconds(20000)));
  const std::int64_t before = status_of(ranks.process(0), "VmHWM");
  std::vector<FileDescriptor> silent;
  std::size_t max_seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    silent.push_back(connect_to(ranks.port(), GetParam()));
    ASSERT_TRUE(silent.back().is_open()) << i << ": " << std::strerror(errno);
    if (i % 256 == 0) max_seen = std::max(max_seen, descriptors_of(ranks.process(0)));
  }
  std::atomic<bool> is_over = false;
  std::thread flooding([&] {
    for (std::size_t i = 0; !is_over; i = (i + 1) % silent.size()) silent[i] = connect_to(ranks.port(), GetParam());
  });
  ranks.report(1).phase.store(1);
  const bool has_joined = ranks.await_calls(3, milliseconds(20000));
  max_seen = std::max(max_seen, descriptors_of(ranks.process(0)));
  const std::int64_t after = status_of(ranks.process(0), "VmHWM");
  is_over = true;
  flooding.join();
  EXPECT_TRUE(has_joined) << ranks.message(0) << " / " << ranks.message(1);
  EXPECT_LT(max_seen, max_descriptors);
  RecordProperty("growth_kb", std::to_string(after - before));
  EXPECT_LT(after - before, allowed_growth_kb);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0) << ranks.message(rank);
  }
}

/// From another address than the ranks', and from the same.
INSTANTIATE_TEST_SUITE_P(From, Pending, ::testing::Values(2U, 1U),
                         [](const auto& last_byte) { return last_byte.param == 1 ? "TheRanksAddress" : "Another"; });

/// The data port of a rank, and the plane of a job of one that it asks whether it still lives.
class HostileDataPort : public ::testing::Test {
 protected:
  void SetUp() override {
    auto plane = engine::rendezvous::ControlPlane::join({});
    ASSERT_TRUE(plane);
    plane_ = std::move(*plane);
    auto mesh = engine::TcpMesh::create("127.0.0.1", secret);
    ASSERT_TRUE(mesh);
    mesh_ = std::move(*mesh);
  }
  /// A stream of the job can still be made.
  void expect_open(std::uint32_t src) {
    const engine::ConnectionKey key{7, src, 0};
    const auto deadline = std::chrono::steady_clock::now() + milliseconds(20000);
    auto out = mesh_->connect(key, {{"127.0.0.1"}, mesh_->port(), ""}, deadline, *plane_);
    ASSERT_TRUE(out) << out.error().message;
    auto in = mesh_->accept(key, deadline, *plane_);
    ASSERT_TRUE(in) << in.error().message;
  }

  static constexpr const char* secret = "a secret of this test";
  std::unique_ptr<engine::rendezvous::ControlPlane> plane_;
  std::unique_ptr<engine::TcpMesh> mesh_;
};

TEST_F(HostileDataPort, ThousandsOfConnectionsKeepNoStreamOut) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 3000; ++i) silent.push_back(connect_to(mesh_->port(), 2 + static_cast<std::uint32_t>(i % 2)));
  // Both ends of those that were admitted are of this process.
  EXPECT_LT(descriptors_of(getpid()), silent.size() + max_descriptors);
  expect_open(1);
}

/// All descriptors of the process are taken while a rank connects; then one becomes free.
TEST_F(HostileDataPort, AShortageOfDescriptorsThatPassesIsNotFinal) {
  FileDescriptor out = connect_to(mesh_->port());  // A rank of the job that has just come.
  ASSERT_TRUE(out.is_open());
  expect_open(1);
  std::vector<FileDescriptor> hoard;
  FileDescriptor late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit before = files;
  files.rlim_cur = descriptors_of(getpid()) + 8;
  setrlimit(RLIMIT_NOFILE, &files);
  while (true) {
    hoard.emplace_back(::dup(late.get()));
    if (!hoard.back().is_open()) break;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(mesh_->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(late.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::this_thread::sleep_for(milliseconds(200));  // The port meets the shortage, on both sides of a greeting.
  std::thread waiting([&] {
    const auto deadline = std::chrono::steady_clock::now() + milliseconds(20000);
    const auto in = mesh_->accept({7, 9, 0}, deadline, *plane_);
    EXPECT_TRUE(in) << in.error().message;
  });
  std::thread connecting([&] {
    const auto deadline = std::chrono::steady_clock::now() + milliseconds(20000);
    const auto made = mesh_->connect({7, 9, 0}, {{"127.0.0.1"}, mesh_->port(), ""}, deadline, *plane_);
    EXPECT_TRUE(made) << made.error().message;
  });
  std::this_thread::sleep_for(milliseconds(100));
  hoard.clear();
  connecting.join();
  waiting.join();
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace espalier
