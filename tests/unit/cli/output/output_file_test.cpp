#include "cli/output/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <thread>

namespace espalier::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t permissions = 0777;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() { fs::create_directories(folder_); }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text_of(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  static void set_text(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & permissions : 0;
  }
  [[nodiscard]] std::size_t count_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_ = fs::temp_directory_path() / ("espalier_output_" + std::to_string(getpid()));
};

Result<void> write_new(std::ostream& stream) {
  stream << "new";
  return {};
}

Result<void> write_much(std::ostream& stream) {
  for (int i = 0; i < 1'000; ++i) stream << std::string(1'000, 'x');
  return {};
}

TEST_F(OutputFileTest, ANewFileHonoursTheMask) {
  const mode_t before = umask(027);
  const auto written = write_file(at("new"), write_new);
  umask(before);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(text_of(at("new")), "new");
  EXPECT_EQ(mode_of(at("new")), 0640);  // 0666 less 027
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(OutputFileTest, AFileKeepsItsPermissions) {
  for (const mode_t mode : {mode_t{0600}, mode_t{0664}, mode_t{0755}}) {
    set_text(at("old"), "old");
    ASSERT_EQ(chmod(at("old").c_str(), mode), 0);
    ASSERT_TRUE(write_file(at("old"), write_new));
    EXPECT_EQ(text_of(at("old")), "new");
    EXPECT_EQ(mode_of(at("old")), mode);
  }
}

TEST_F(OutputFileTest, ALinkStaysAndWhatIsBehindItIsReplaced) {
  fs::create_directory(folder_ / "below");
  set_text(at("below/file"), "old");
  fs::create_symlink("below/file", at("middle"));
  fs::create_symlink(at("middle"), at("link"));
  fs::create_symlink("below/nothing-yet", at("dangling"));
  ASSERT_TRUE(write_file(at("link"), write_new));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_TRUE(fs::is_symlink(at("middle")));
  EXPECT_EQ(text_of(at("below/file")), "new");
  ASSERT_TRUE(write_file(at("dangling"), write_new));
  EXPECT_TRUE(fs::is_symlink(at("dangling")));
  EXPECT_EQ(text_of(at("below/nothing-yet")), "new");
}

TEST_F(OutputFileTest, LinksInACircleAreRefused) {
  fs::create_symlink(at("b"), at("a"));
  fs::create_symlink(at("a"), at("b"));
  EXPECT_FALSE(write_file(at("a"), write_new));
}

// A link of the name that earlier versions gave to the unfinished file leads to somebody's file, which stays as it is.
TEST_F(OutputFileTest, NoLinkOfAnExpectedNameIsFollowed) {
  set_text(at("victim"), "precious");
  fs::create_symlink(at("victim"), at("out.tmp" + std::to_string(getpid())));
  ASSERT_TRUE(write_file(at("out"), write_new));
  EXPECT_EQ(text_of(at("victim")), "precious");
  EXPECT_EQ(text_of(at("out")), "new");
}

TEST_F(OutputFileTest, NamesOfUnfinishedFilesAreNeverTheSame) {
  std::string first;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(write_file(at("out"), [&](std::ostream&) -> Result<void> {
      for (const auto& entry : fs::directory_iterator(folder_)) {
        const std::string name = entry.path().filename();
        if (name == "out") continue;
        EXPECT_NE(name, first);
        first = name;
      }
      return {};
    }));
  }
  EXPECT_NE(first, "");
}

TEST_F(OutputFileTest, AFailureLeavesWhatWasThere) {
  set_text(at("old"), "old");
  const auto written = write_file(at("old"), [](std::ostream& stream) -> Result<void> {
    stream << "half";
    return fail(ErrorCode::infeasible, "no");
  });
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "no");
  EXPECT_EQ(text_of(at("old")), "old");
  EXPECT_EQ(count_files(), 1U);
}

// A limit on the size of files stands for a disk that becomes full late: the first blocks fit.
TEST_F(OutputFileTest, ADiskThatFillsUpLateIsAnError) {
  set_text(at("old"), "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{200'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_file(at("old"), write_much);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "cannot write " + at("old") + ": File too large");
  EXPECT_EQ(text_of(at("old")), "old");
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(OutputFileTest, DevicesAndPipesAreWrittenStraight) {
  EXPECT_TRUE(write_file("/dev/null", write_much));
  const auto full = write_file("/dev/full", write_new);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "cannot write /dev/full: No space left on device");
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = text_of(at("pipe")); });
  EXPECT_TRUE(write_file(at("pipe"), write_new));
  reader.join();
  EXPECT_EQ(received, "new");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  EXPECT_TRUE(is_written_straight(at("pipe")));
  EXPECT_FALSE(is_written_straight(at("nothing")));
}

// A descriptor is written where it stands, not from the file's beginning.
TEST_F(OutputFileTest, ADescriptorIsUsedItself) {
  const int file = open(at("log").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(file, "before ", 7), 7);
  EXPECT_TRUE(write_file("/dev/fd/" + std::to_string(file), write_new));
  EXPECT_TRUE(write_file("/proc/self/fd/" + std::to_string(file), write_new));
  close(file);
  EXPECT_EQ(text_of(at("log")), "before newnew");
  EXPECT_FALSE(write_file("/dev/fd/" + std::to_string(file), write_new));
}

/// Whatever ends the process while it writes: nothing unfinished stays, and who waits for it sees the signal.
TEST_F(OutputFileTest, ASignalLeavesNothingUnfinished) {
  set_text(at("a.json"), "old");
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU}) {
    SCOPED_TRACE(strsignal(signal));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      std::signal(signal, SIG_DFL);
      install_interrupt_handler();
      static_cast<void>(write_file(at("a.json"), [&](std::ostream& stream) {
        static_cast<void>(write_much(stream));
        raise(signal);
        return Result<void>();
      }));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (signal == SIGINT || signal == SIGTERM) {
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 130);
    } else {
      EXPECT_TRUE(WIFSIGNALED(status));
      EXPECT_EQ(WTERMSIG(status), signal);
    }
    EXPECT_EQ(count_files(), 1U);
    EXPECT_EQ(text_of(at("a.json")), "old");
  }
}

/// Under nohup a terminal that goes away ends nothing.
TEST_F(OutputFileTest, AnIgnoredSignalStaysIgnored) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGHUP, SIG_IGN);
    install_interrupt_handler();
    raise(SIGHUP);
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(OutputFileTest, AFolderThatIsMissingIsNamed) {
  const auto written = write_file(at("there/a.json"), write_new);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "cannot write " + at("there/a.json") + ": there is no folder " + at("there"));
  EXPECT_EQ(written.error().help, "make it with mkdir -p " + at("there"));
}

TEST_F(OutputFileTest, AFolderIsNoFile) {
  const auto written = write_file(folder_.string(), write_new);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "cannot write " + folder_.string() + ": Is a directory");
  EXPECT_FALSE(write_file(at("nowhere/file"), write_new));
}

}  // namespace
}  // namespace espalier::cli
