#include "cli/output/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace espalier::cli {
namespace {

using namespace std::chrono_literals;

/// What is shown of one step that goes on until something has been.
std::string shown(const Console& console, std::size_t total) {
  unsetenv("CI");
  testing::internal::CaptureStderr();
  {
    // The step has to have begun by the first time that something is shown.
    Progress progress(console, "simulating", total, {.first_bar = 200ms, .next_bar = 1ms, .line = 200ms});
    progress.step("ring 4096 B");
    for (int i = 0; i < 20'000 && !progress.is_shown(); ++i) std::this_thread::sleep_for(1ms);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, IsALineNowAndThenWhereStandardErrorIsAFile) {
  const std::string text = shown({}, 3);
  EXPECT_TRUE(text.starts_with("simulating 1/3 ring 4096 B (")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(shown({}, 0).starts_with("simulating ring 4096 B ("));
}

TEST(Progress, IsNothingWhenQuietOrWhereLogsAreToBeTheSame) {
  Console quiet;
  quiet.quiet = true;
  EXPECT_EQ(quiet.progress_style(), ProgressStyle::none);
  setenv("CI", "true", 1);
  EXPECT_EQ(Console{}.progress_style(), ProgressStyle::none);
  unsetenv("CI");
  EXPECT_EQ(Console{}.progress_style(), ProgressStyle::lines);
}

TEST(Progress, IsNothingOfShortWork) {
  testing::internal::CaptureStderr();
  { Progress progress(Console{}, "simulating", 3, {.first_bar = 1h, .next_bar = 1h, .line = 1h}); }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace espalier::cli
