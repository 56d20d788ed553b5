#include <gtest/gtest.h>

#include <algorithm>

#include "scenario/read/read_scenario.h"
#include "tests/support/recorded_messages.h"

namespace espalier::scenario {
namespace {

namespace test = espalier::test;

const std::filesystem::path scenario_files = ESPALIER_SOURCE_DIR "/tests/error/scenario";

class ScenarioErrors : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioErrors, MessageIsAsRecorded) {
  std::filesystem::current_path(scenario_files);  // so that messages name the file alone
  const ScenarioReading reading = read_scenario_file(GetParam() + ".yaml");
  EXPECT_FALSE(reading.scenario.has_value());
  EXPECT_TRUE(has_errors(reading.diagnostics));
  std::string messages;
  for (const Diagnostic& diagnostic : reading.diagnostics) messages += render(diagnostic, false);
  test::expect_recorded(scenario_files, GetParam(), messages);
  if (!GetParam().starts_with("N0")) return;
  EXPECT_NE(messages.find("[" + GetParam().substr(0, 4) + "]"), std::string::npos) << messages;
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioErrors, testing::ValuesIn(test::stems_of(scenario_files, ".yaml")),
                         test::test_name);

/// What the reader's own checks find before the job's.
const std::vector<std::string> scenario_codes_shown_elsewhere = {"N005"};

TEST(ScenarioErrorCodes, EachIsDocumentedAndShown) {
  const std::string document = test::contents(ESPALIER_SOURCE_DIR "/docs/scenarios.md");
  const std::string header = test::contents(ESPALIER_SOURCE_DIR "/scenario/read/scenario_codes.h");
  const std::vector<std::string> stems = test::stems_of(scenario_files, ".yaml");
  int codes = 0;
  for (std::size_t at = header.find("= \"N"); at != std::string::npos; at = header.find("= \"N", at + 1)) {
    const std::string code = header.substr(at + 3, 4);
    ++codes;
    EXPECT_NE(document.find("| " + code + " |"), std::string::npos) << code;
    if (std::ranges::find(scenario_codes_shown_elsewhere, code) != scenario_codes_shown_elsewhere.end()) continue;
    EXPECT_TRUE(std::ranges::any_of(stems, [&](const std::string& stem) { return stem.starts_with(code); })) << code;
  }
  EXPECT_GT(codes, 15);
}

}  // namespace
}  // namespace espalier::scenario
