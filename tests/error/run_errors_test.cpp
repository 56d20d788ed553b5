#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "compare/read/read_run.h"

namespace espalier {
namespace {

const std::filesystem::path run_files = ESPALIER_SOURCE_DIR "/tests/error/runs";

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run_files)) {
    if (entry.path().extension() != ".expected") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// Each file is a run that cannot be read.
class RunErrors : public testing::TestWithParam<std::string> {};

TEST_P(RunErrors, MessageIsAsRecorded) {
  const auto run = compare::read_run(contents(run_files / GetParam()), GetParam(), {});
  ASSERT_FALSE(run.has_value());
  EXPECT_TRUE(run.error().message.starts_with(GetParam() + ":")) << run.error().message;
  std::string message = run.error().message + "\n";
  if (!run.error().help.empty()) message += "help: " + run.error().help + "\n";
  const std::filesystem::path expected = run_files / (GetParam() + ".expected");
  if (std::getenv("ESPALIER_RECORD") != nullptr) std::ofstream(expected, std::ios::binary) << message;
  EXPECT_EQ(message, contents(expected));
}

INSTANTIATE_TEST_SUITE_P(Files, RunErrors, testing::ValuesIn(bad_files()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace espalier
