#include "engine/launch/shared_secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/process_stat.h"

namespace espalier::engine::launch {
namespace {

/// A launcher's variable that nothing here is started with: this process is the launcher of its forks.
LaunchInfo launch_of(const std::string& job) {
  LaunchInfo launch;
  launch.launcher = Launcher::open_mpi;
  launch.job = job;
  launch.is_one_machine = true;
  launch.rank_variable = "ESPALIER_TEST_NO_SUCH_RANK";
  return launch;
}

class SharedSecretTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/secretXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    runtime_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(runtime_); }

  [[nodiscard]] rendezvous::Environment environment() const { return {{"XDG_RUNTIME_DIR", runtime_}}; }
  [[nodiscard]] std::string folder() const { return runtime_ + "/espalier"; }
  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder())) ++count;
    return count;
  }

  /// What a rank reads, a fork of this process.
  std::string secret_of_a_rank(const std::string& job) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return {};
    if (fork() == 0) {
      const auto secret = share_secret(launch_of(job), environment());
      const std::string text = secret ? secret->text : "error: " + secret.error().message;
      _exit(write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
    }
    close(ends[1]);
    pipes_.push_back(ends[0]);
    return {};
  }
  std::set<std::string> secrets() {
    std::set<std::string> all;
    for (const int pipe : pipes_) {
      std::array<char, 1024> text{};
      const ssize_t count = read(pipe, text.data(), text.size());
      all.insert(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))));
      close(pipe);
    }
    pipes_.clear();
    while (wait(nullptr) > 0) continue;
    return all;
  }

  std::string runtime_;
  std::vector<int> pipes_;
};

TEST_F(SharedSecretTest, RanksOfOneLauncherGetOneAndJobsTheirOwn) {
  for (int rank = 0; rank < 20; ++rank) secret_of_a_rank("first");
  const std::set<std::string> first = secrets();
  ASSERT_EQ(first.size(), 1U) << *first.begin();
  EXPECT_EQ(first.begin()->size(), 64U) << *first.begin();
  for (int rank = 0; rank < 3; ++rank) secret_of_a_rank("second");
  const std::set<std::string> second = secrets();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(*first.begin(), *second.begin());
  EXPECT_EQ(files(), 2U);  // Nothing half-written stays.
  struct stat status {};
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
  }
}

TEST_F(SharedSecretTest, AFolderThatOthersReachIsRefused) {
  ASSERT_EQ(mkdir(folder().c_str(), 0700), 0);
  ASSERT_EQ(chmod(folder().c_str(), 0777), 0);
  secret_of_a_rank("job");
  EXPECT_EQ(*secrets().begin(), "error: " + folder() + " is not a folder of this user alone");
  std::filesystem::remove(folder());
  ASSERT_EQ(symlink("/tmp", folder().c_str()), 0);
  secret_of_a_rank("job");
  EXPECT_EQ(*secrets().begin(), "error: " + folder() + " is not a folder of this user alone");
}

TEST_F(SharedSecretTest, WhatDeadLaunchersLeftIsRemoved) {
  ASSERT_EQ(mkdir(folder().c_str(), 0700), 0);
  const std::uint64_t start = read_process_stat(getpid()).value().start;
  const std::string alive = folder() + "/" + std::to_string(getpid()) + "-" + std::to_string(start) + "-0";
  const std::string dead = folder() + "/" + std::to_string(getpid()) + "-" + std::to_string(start + 1) + "-0";
  for (const std::string& path : {alive, dead}) std::ofstream(path) << "a secret of the past";
  secret_of_a_rank("job");
  EXPECT_EQ(secrets().begin()->size(), 64U);
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_FALSE(std::filesystem::exists(dead));
}

TEST_F(SharedSecretTest, WhatIsGivenComesFirst) {
  const std::string file = runtime_ + "/given";
  std::ofstream(file) << "a secret in a file\n";
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  rendezvous::Environment given = environment();
  given["ESPALIER_SECRET"] = "a secret in the environment";
  EXPECT_EQ(secret_of(launch_of("job"), given, file)->text, "a secret in a file");
  EXPECT_EQ(secret_of(launch_of("job"), given)->text, "a secret in the environment");
  EXPECT_EQ(secret_of(launch_of("job"), given)->path, "");
  LaunchInfo apart = launch_of("job");
  apart.is_one_machine = false;
  EXPECT_EQ(secret_of(apart, environment()).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace espalier::engine::launch
