#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "schedule/schedule_json.h"

namespace espalier {
namespace {

const std::filesystem::path folder = ESPALIER_SOURCE_DIR "/tests/error/plan";

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> bad_files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") stems.push_back(entry.path().stem().string());
  }
  std::ranges::sort(stems);
  return stems;
}

class PlanErrors : public testing::TestWithParam<std::string> {};

TEST_P(PlanErrors, MessageIsAsRecorded) {
  const std::string file = GetParam() + ".json";
  const Result<PlanFile> plan = read_plan(contents(folder / file), file);
  ASSERT_FALSE(plan.has_value());
  std::string message = plan.error().message + "\n";
  if (!plan.error().help.empty()) message += "help: " + plan.error().help + "\n";
  const std::filesystem::path expected = folder / (GetParam() + ".expected");
  if (std::getenv("ESPALIER_RECORD") != nullptr) std::ofstream(expected, std::ios::binary) << message;
  EXPECT_EQ(message, contents(expected));
}

INSTANTIATE_TEST_SUITE_P(Files, PlanErrors, testing::ValuesIn(bad_files()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace espalier
