// Memory that runs out in a background thread: every allocation of theirs fails once, in turn. The job goes on, or ends
// by an error that says why; no exception ends the process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/rendezvous/wire/link.h"
#include "engine/rendezvous/wire/messages.h"
#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

namespace {

/// Allocations of background threads until one fails; none does while it is negative.
std::atomic<std::int64_t> allocations_left{-1};
/// How many have failed.
std::atomic<std::int64_t> failures{0};
/// How many fail then, one after the other.
std::atomic<std::int64_t> failures_wanted{1};

bool is_background_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::strcmp(name.data(), "espalier-plane") == 0;
}

bool fails_now() {
  if (allocations_left.load(std::memory_order_relaxed) < 0 || !is_background_thread()) return false;
  if (allocations_left.load() > 0) {
    allocations_left.fetch_sub(1);
    return false;
  }
  if (failures.fetch_add(1) + 1 >= failures_wanted.load()) allocations_left.store(-1);
  return true;
}

}  // namespace

// Not inlined: g++ would take what `new` gives for malloc's and object to `delete`, which here is free's.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = fails_now() ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace espalier {
namespace {

using std::chrono::milliseconds;

void fail_allocations(std::int64_t after, std::int64_t wanted) {
  failures.store(0);
  failures_wanted.store(wanted);
  allocations_left.store(after);
}

/// A connection whose claim is refused, and one that sends garbage.
void come_unauthenticated(std::uint16_t port) {
  const std::string claim = engine::rendezvous::encode(
      engine::rendezvous::Claim{engine::rendezvous::protocol_version, 1, 2, "", "host x, process 1", {}, {}});
  for (const std::string& bytes :
       {engine::rendezvous::frame_header(engine::rendezvous::FrameType::claim, claim.size()) + claim,
        std::string("GET / HTTP/1.1\r\n\r\n")}) {
    const FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
    ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::array<char, 4096> answer;
    while (recv(fd.get(), answer.data(), answer.size(), 0) > 0) {
    }
  }
}

/// A job of two from its beginning to its end, with unauthenticated connections on its port; the error of the first
/// rank that has one.
std::optional<Error> run_job(TransportChoice transport, milliseconds timeout) {
  auto listener = engine::rendezvous::listen_on("127.0.0.1", 0);
  EXPECT_TRUE(listener);
  const std::uint16_t port = listener->port;
  test::PlannedSource source("flat");
  std::array<std::optional<Error>, 2> errors;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    JobOptions own;
    own.transport = transport;
    own.timeout = timeout;
    own.rendezvous.timeout = timeout;
    own.rendezvous.host = "127.0.0.1";
    own.rendezvous.port = port;
    own.rendezvous.rank = rank;
    own.rendezvous.world = 2;
    own.rendezvous.secret = "a secret of this test";
    if (rank == 0) own.rendezvous.listener = std::move(*listener);
    threads.emplace_back([&, rank, own = std::move(own)]() mutable {
      if (rank == 1) come_unauthenticated(port);
      auto joined = Communicator::join(std::move(own), source.source());
      if (!joined) {
        errors[rank] = joined.error();
        return;
      }
      float value = 1;
      auto started =
          (*joined)->start({CollectiveKind::all_reduce, &value, &value, 1, ElementType::float32, ReduceOperation::sum});
      const auto ended = started ? started->wait() : tl::unexpected(started.error());
      if (!ended) {
        errors[rank] = ended.error();
      } else if (value != 2) {
        errors[rank] = Error{ErrorCode::invalid_input, "a wrong sum", {}};
      } else if (const auto met = (*joined)->barrier(); !met) {
        errors[rank] = met.error();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors[0] ? errors[0] : errors[1];
}

class NoMemory : public ::testing::TestWithParam<std::tuple<TransportChoice, std::int64_t>> {};

TEST_P(NoMemory, InABackgroundThreadEndsTheJobByAnErrorAtMost) {
  const auto [transport, wanted] = GetParam();
  int went_on = 0;
  int ended = 0;
  // Where the hub fails before a rank has joined, that rank looks for it until its timeout: a short one, and the longer
  // the lack lasts the fewer moments are tried.
  for (std::int64_t after = 0; after < 5000; after += 1 + wanted / 8) {
    SCOPED_TRACE(after);
    fail_allocations(after, wanted);
    const auto error = run_job(transport, milliseconds(1500));
    const bool has_failed = failures.load() > 0;
    allocations_left.store(-1);
    if (!has_failed) break;  // There were fewer allocations than that.
    if (!error) {
      ++went_on;
      continue;
    }
    ++ended;
    EXPECT_FALSE(error->message.empty());
    RecordProperty("after_" + std::to_string(after), error->message);
    EXPECT_NE(error->message, "a wrong sum");
    EXPECT_EQ(error->message.find("Bad file descriptor"), std::string::npos) << error->message;
  }
  // Allocations for unauthenticated connections cost only them, those for members end the job.
  if (wanted == 1) {
    EXPECT_GT(went_on, 0);
  }
  EXPECT_GT(ended, 0);
  EXPECT_FALSE(run_job(transport, milliseconds(20000)).has_value());  // And with memory, all is well.
}

/// One allocation fails, or a hundred in a row: then there is none for the notice of it either.
INSTANTIATE_TEST_SUITE_P(Transports, NoMemory,
                         ::testing::Combine(::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                                            ::testing::Values<std::int64_t>(1, 100)),
                         [](const auto& setting) {
                           return std::string(to_string(std::get<0>(setting.param))) + "_" +
                                  std::to_string(std::get<1>(setting.param));
                         });

}  // namespace
}  // namespace espalier
