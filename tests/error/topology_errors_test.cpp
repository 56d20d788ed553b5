#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/recorded_messages.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

const std::filesystem::path topology_files = ESPALIER_SOURCE_DIR "/tests/error/topology";

class TopologyErrors : public testing::TestWithParam<std::string> {};

TEST_P(TopologyErrors, MessageIsAsRecorded) {
  std::filesystem::current_path(topology_files);  // so that messages name the file alone
  const TopologyReading reading = read_topology_file(GetParam() + ".yaml");
  EXPECT_FALSE(reading.topology.has_value());
  EXPECT_TRUE(has_errors(reading.diagnostics));
  std::string messages;
  for (const Diagnostic& diagnostic : reading.diagnostics) messages += render(diagnostic, false);
  test::expect_recorded(topology_files, GetParam(), messages);
  if (!GetParam().starts_with("T0")) return;
  EXPECT_NE(messages.find("[" + GetParam().substr(0, 4) + "]"), std::string::npos) << messages;
}

INSTANTIATE_TEST_SUITE_P(Files, TopologyErrors, testing::ValuesIn(test::stems_of(topology_files, ".yaml")),
                         test::test_name);

/// Codes that no small file can show; tests/unit/topology/yaml/read_limits_test.cpp does.
const std::vector<std::string> topology_codes_shown_elsewhere = {"T001", "T002"};

TEST(TopologyErrorCodes, EachIsDocumentedAndShown) {
  const std::string document = test::contents(ESPALIER_SOURCE_DIR "/docs/topology.md");
  const std::string header = test::contents(ESPALIER_SOURCE_DIR "/topology/yaml/read_codes.h");
  const std::vector<std::string> stems = test::stems_of(topology_files, ".yaml");
  int codes = 0;
  for (std::size_t at = header.find("= \"T"); at != std::string::npos; at = header.find("= \"T", at + 1)) {
    const std::string code = header.substr(at + 3, 4);
    ++codes;
    EXPECT_NE(document.find("| " + code + " |"), std::string::npos) << code;
    if (std::ranges::find(topology_codes_shown_elsewhere, code) != topology_codes_shown_elsewhere.end()) continue;
    EXPECT_TRUE(std::ranges::any_of(stems, [&](const std::string& stem) { return stem.starts_with(code); })) << code;
  }
  EXPECT_GT(codes, 40);
}

}  // namespace
}  // namespace espalier
