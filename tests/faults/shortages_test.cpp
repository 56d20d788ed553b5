// Too little of something, forks, and jobs that come and go: the shortage is named, nobody hangs, nothing leaks.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "tests/faults/rank_processes.h"
#include "tests/support/local_ranks.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using test::call_until_failure;
using test::Memory;
using test::RankProcesses;

JobOptions options_of(TransportChoice transport) {
  JobOptions options;
  options.transport = transport;
  options.timeout = milliseconds(4000);
  options.rendezvous.timeout = milliseconds(4000);
  return options;
}

void set_limit(int what, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(static_cast<__rlimit_resource_t>(what), &limit);
}

class Shortages : public ::testing::TestWithParam<TransportChoice> {};

/// Whatever the number of descriptors that one rank may have: the job runs, or all ranks are told.
TEST_P(Shortages, Fault13TooFewFileDescriptors) {
  std::uint32_t refused = 0;
  for (rlim_t limit = 4; limit < 40; limit += 3) {
    SCOPED_TRACE(limit);
    RankProcesses ranks(3, options_of(GetParam()), [&](RankProcesses::Rank&& own) {
      if (own.rank == 1) set_limit(RLIMIT_NOFILE, limit);
      return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::registered);
    });
    const auto has_run_or_ended = [&] {
      return ranks.report(1).calls.load() >= 3 || ranks.report(1).failed_at_ns.load() != 0;
    };
    ASSERT_TRUE(RankProcesses::await(has_run_or_ended, milliseconds(20000)));
    if (ranks.report(1).failed_at_ns.load() == 0) continue;
    ++refused;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const int code = ranks.exit_code(rank);
      EXPECT_TRUE(code > 0 && code < 8) << code << ": " << ranks.message(rank);
    }
    const std::string message = ranks.message(1);
    EXPECT_TRUE(message.find("ulimit -n") != std::string::npos ||
                message.find("Too many open files") != std::string::npos)
        << message;
  }
  EXPECT_GT(refused, 0U);
}

TEST_P(Shortages, Fault13And14AFileSizeLimitEndsAllRanks) {
  RankProcesses ranks(3, options_of(GetParam()), [&](RankProcesses::Rank&& own) {
    if (own.rank == 2) set_limit(RLIMIT_FSIZE, 16384);
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::registered);
  });
  if (GetParam() == TransportChoice::tcp) {  // Memory that nobody shares is in no file: the job runs.
    EXPECT_TRUE(RankProcesses::await([&] { return ranks.report(2).calls.load() >= 3; }, milliseconds(20000)));
    return;
  }
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks.exit_code(rank), 6) << ranks.message(rank);
    EXPECT_NE(ranks.message(rank).find("bytes of shared memory: File too large"), std::string::npos)
        << ranks.message(rank);
  }
  EXPECT_NE(ranks.message(2).find("ulimit -f"), std::string::npos) << ranks.message(2);
}

TEST_P(Shortages, Fault13TooLittleMemoryIsNamedInBytes) {
  RankProcesses ranks(2, options_of(GetParam()), [&](RankProcesses::Rank&& own) {
    test::RankReport* report = own.report;
    test::PlannedSource source("flat");
    auto joined = Communicator::join(std::move(own.options), source.source());
    if (!joined) return 6;
    const auto memory = (*joined)->allocate(std::size_t{1} << 50);
    if (memory) return 5;
    report->fail_with(memory.error());
    return (*joined)->barrier() ? 33 : 4;  // A refusal is no failure of the job.
  });
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks.exit_code(rank), 33) << ranks.message(rank);
    const std::string what = GetParam() == TransportChoice::shm ? "shared memory" : "memory";
    EXPECT_NE(ranks.message(rank).find("cannot get 1125899906842624 bytes of " + what + ": "), std::string::npos)
        << ranks.message(rank);
  }
}

TEST_P(Shortages, Fault14WhoFailsWhileJoiningIsNamed) {
  RankProcesses ranks(3, options_of(GetParam()), [&](RankProcesses::Rank&& own) {
    if (own.rank == 1) raise(SIGKILL);
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::registered);
  });
  EXPECT_EQ(ranks.exit_code(0), 6);
  EXPECT_EQ(ranks.exit_code(2), 6);
  EXPECT_NE(ranks.message(0).find("rank 1 did not join within 4 s"), std::string::npos) << ranks.message(0);
}

/// Descriptors of this process, by what they lead to.
std::vector<std::string> open_files() {
  std::vector<std::string> files;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    std::array<char, 256> target{};
    const std::string path = "/proc/self/fd/" + std::string(entry->d_name);
    if (readlink(path.c_str(), target.data(), target.size() - 1) > 0) files.emplace_back(target.data());
  }
  closedir(folder);
  return files;
}

std::size_t mapped_memfds() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:espalier") != std::string::npos;
  return count;
}

/// A fork of a rank, and a program that it starts, share nothing with the job and may end as they like.
TEST_P(Shortages, Fault15ForksAreHarmless) {
  RankProcesses ranks(2, options_of(GetParam()), [&](RankProcesses::Rank&& own) {
    test::PlannedSource source("flat");
    auto joined = Communicator::join(std::move(own.options), source.source());
    if (!joined) return 6;
    const auto memory = (*joined)->allocate(1000);
    if (!memory) return 5;
    auto* value = static_cast<std::int32_t*>(*memory);
    for (int round = 0; round < 3; ++round) {
      *value = 1;
      if (!(*joined)->all_reduce(value, value, 1, ElementType::int32, ReduceOperation::sum) || *value != 2) return 4;
      const pid_t child = fork();
      if (child == 0) {
        const auto refused = (*joined)->barrier();
        if (refused || refused.error().message.find("fork of rank") == std::string::npos) _exit(3);
        joined->reset();
        if (round == 2)
          execl("/bin/sh", "sh", "-c", "ls -l /proc/self/fd | grep -c -e memfd -e socket -e event", nullptr);
        _exit(round == 2 ? 2 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      // grep counts none, and so ends with 1.
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) return 10 + WEXITSTATUS(status);
    }
    return (*joined)->barrier() ? 33 : 7;
  });
  for (std::uint32_t rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.exit_code(rank), 33);
}

TEST_P(Shortages, Fault18JoiningAgainAndAgainLeaksNothing) {
  test::PlannedSource source("flat");
  std::size_t files = 0;
  std::size_t maps = 0;
  for (int round = 0; round < 22; ++round) {
    run_ranks(3, source.source(), options_of(GetParam()), [&](Communicator& communicator) {
      const std::vector<std::uint32_t> all = {0, 1, 2};
      auto group = communicator.split(all, "again", source.source());
      ASSERT_TRUE(group);
      test::run_case(**group, {CollectiveKind::all_reduce, ElementType::float32, ReduceOperation::sum, 3, 0, 5000, 1},
                     Memory::registered, false);
      test::run_case(communicator,
                     {CollectiveKind::all_gather, ElementType::float32, ReduceOperation::sum, 3, 0, 5000, 1},
                     Memory::plain, false);
      const auto met = communicator.barrier();  // Who is slow may hear of the abort in it.
      if (round % 3 == 0 && communicator.rank() == 1) communicator.abort("every third is aborted");
      if (round % 3 != 0) {
        ASSERT_TRUE(met);
      }
    });
    if (round < 2) {  // The first rounds may open what stays open.
      files = open_files().size();
      maps = mapped_memfds();
    }
  }
  EXPECT_EQ(open_files().size(), files);
  EXPECT_EQ(mapped_memfds(), maps);
  EXPECT_EQ(maps, 0U);
}

/// Registering and freeing in one long job: neither descriptors nor mapped pages pile up, here or at the peers.
TEST_P(Shortages, Fault16RegistrationsDoNotPileUp) {
  test::PlannedSource source("flat");
  run_ranks(2, source.source(), options_of(GetParam()), [&](Communicator& communicator) {
    std::size_t files = 0;
    std::size_t maps = 0;
    for (std::size_t round = 0; round < 60; ++round) {
      test::run_case(communicator,
                     {CollectiveKind::all_reduce, ElementType::int32, ReduceOperation::sum, 2, 0, 1000, round},
                     Memory::registered, false);
      ASSERT_TRUE(communicator.barrier());
      if (communicator.rank() == 0 && round == 10) {
        files = open_files().size();
        maps = mapped_memfds();
      }
      if (communicator.rank() == 0 && round > 10) {
        EXPECT_LE(open_files().size(), files + 2);
        EXPECT_LE(mapped_memfds(), maps + 2);
      }
      ASSERT_TRUE(communicator.barrier());
    }
  });
}

TEST_P(Shortages, Fault20MessagesPast2GiB) {
  if (std::getenv("ESPALIER_SLOW_TESTS") == nullptr) GTEST_SKIP() << "takes 10 GB of memory; set ESPALIER_SLOW_TESTS";
  constexpr std::size_t count = (std::size_t{1} << 31U) + 4099;
  test::PlannedSource source("flat");
  JobOptions options = options_of(GetParam());
  options.timeout = milliseconds(120000);
  run_ranks(2, source.source(), std::move(options), [&](Communicator& communicator) {
    const auto memory = communicator.allocate(count);
    ASSERT_TRUE(memory) << memory.error().message;
    const engine::DataCase data{CollectiveKind::all_reduce, ElementType::int8, ReduceOperation::sum, 2, 0, count, 1};
    engine::fill_send_buffer(data, communicator.rank(), *memory);
    const auto done = communicator.all_reduce(*memory, *memory, count, ElementType::int8, ReduceOperation::sum);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(engine::check_receive_buffer(data, communicator.rank(), *memory).wrong, 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Shortages, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

}  // namespace
}  // namespace espalier
