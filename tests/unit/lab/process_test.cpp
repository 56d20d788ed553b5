#include "lab/process.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/send_signal.h"
#include "lab/memory_file.h"

namespace espalier::lab {
namespace {

using std::chrono_literals::operator""ms;

TEST(Process, KeepsWhatItWrites) {
  Launch launch;
  launch.arguments = {"sh", "-c", "cat; echo $COLOUR; echo oops >&2; exit 7"};
  launch.environment = {{"COLOUR", "green"}};
  launch.input = "hello\n";
  auto process = Process::start(launch);
  ASSERT_TRUE(process) << process.error().message;
  const Outcome outcome = process->wait();
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.output, "hello\ngreen\n");
  EXPECT_EQ(outcome.errors, "oops\n");
}

TEST(Process, WritesMoreThanAPipeHolds) {
  const auto output = run_program({"sh", "-c", "head -c 3000000 /dev/zero"});
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->size(), 3'000'000U);
}

TEST(Process, ThatIsMissingIsAnErrorWithItsName) {
  const auto none = run_program({"espalier-no-such-program"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::unavailable);
  EXPECT_NE(none.error().message.find("espalier-no-such-program"), std::string::npos);
  EXPECT_FALSE(run_program({"/etc/passwd"}));
  EXPECT_FALSE(run_in_namespace("espalier-no-such-namespace", {"true"}));
}

TEST(Process, ThatFailsIsAnErrorWithItsWords) {
  const auto failed = run_program({"sh", "-c", "echo why not >&2; exit 3"});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("code 3: why not"), std::string::npos) << failed.error().message;
}

TEST(Process, IsKilledWithItsObject) {
  int pid = 0;
  {
    Launch launch;
    launch.arguments = {"sleep", "1000"};
    auto process = Process::start(launch);
    ASSERT_TRUE(process);
    pid = process->pid();
    EXPECT_FALSE(process->wait_for(1ms));
    EXPECT_TRUE(send_signal(pid, 0));
  }
  EXPECT_FALSE(send_signal(pid, 0));
}

TEST(Process, TellsTheSignalThatEndedIt) {
  Launch launch;
  launch.arguments = {"sleep", "1000"};
  auto process = Process::start(launch);
  ASSERT_TRUE(process);
  process->kill();
  EXPECT_EQ(process->wait().code, 128 + SIGKILL);
}

TEST(MemoryFile, IsReadByChildrenFromItsBeginning) {
  const auto file = MemoryFile::make("some text");
  ASSERT_TRUE(file);
  for (int time = 0; time < 2; ++time) {
    const auto output = run_program({"cat", file->path()});
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(*output, "some text");
  }
}

}  // namespace
}  // namespace espalier::lab
