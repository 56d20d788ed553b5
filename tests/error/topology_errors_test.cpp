#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "topology/read_topology.h"

namespace espalier {
namespace {

const std::filesystem::path folder = ESPALIER_SOURCE_DIR "/tests/error/topology";

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> bad_files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") stems.push_back(entry.path().stem().string());
  }
  std::ranges::sort(stems);
  return stems;
}

class TopologyErrors : public testing::TestWithParam<std::string> {};

TEST_P(TopologyErrors, MessageIsAsRecorded) {
  std::filesystem::current_path(folder);  // so that messages name the file alone
  const TopologyReading reading = read_topology_file(GetParam() + ".yaml");
  EXPECT_FALSE(reading.topology.has_value());
  EXPECT_TRUE(has_errors(reading.diagnostics));
  std::string messages;
  for (const Diagnostic& diagnostic : reading.diagnostics) messages += render(diagnostic, false);
  const std::filesystem::path expected = folder / (GetParam() + ".expected");
  if (std::getenv("ESPALIER_RECORD") != nullptr) std::ofstream(expected, std::ios::binary) << messages;
  EXPECT_EQ(messages, contents(expected));
  if (!GetParam().starts_with("T0")) return;
  EXPECT_NE(messages.find("[" + GetParam().substr(0, 4) + "]"), std::string::npos) << messages;
}

INSTANTIATE_TEST_SUITE_P(Files, TopologyErrors, testing::ValuesIn(bad_files()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

/// Codes that no small file can show; tests/unit/topology/read_limits_test.cpp does.
const std::vector<std::string> shown_elsewhere = {"T001", "T002"};

TEST(TopologyErrorCodes, EachIsDocumentedAndShown) {
  const std::string document = contents(ESPALIER_SOURCE_DIR "/docs/topology.md");
  const std::string header = contents(ESPALIER_SOURCE_DIR "/topology/read_codes.h");
  const std::vector<std::string> stems = bad_files();
  int codes = 0;
  for (std::size_t at = header.find("= \"T"); at != std::string::npos; at = header.find("= \"T", at + 1)) {
    const std::string code = header.substr(at + 3, 4);
    ++codes;
    EXPECT_NE(document.find("| " + code + " |"), std::string::npos) << code;
    if (std::ranges::find(shown_elsewhere, code) != shown_elsewhere.end()) continue;
    EXPECT_TRUE(std::ranges::any_of(stems, [&](const std::string& stem) { return stem.starts_with(code); })) << code;
  }
  EXPECT_GT(codes, 40);
}

}  // namespace
}  // namespace espalier
