#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "topology/read_topology.h"
#include "topology/without.h"

namespace espalier {
namespace {

const std::filesystem::path folder = ESPALIER_SOURCE_DIR "/tests/error/without";

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> bad_files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") stems.push_back(entry.path().stem().string());
  }
  std::ranges::sort(stems);
  return stems;
}

/// Each file holds what is to be taken away from a DGX-1V, one name per line.
class WithoutErrors : public testing::TestWithParam<std::string> {};

TEST_P(WithoutErrors, MessageIsAsRecorded) {
  const TopologyReading machine = read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx1v.yaml");
  ASSERT_TRUE(machine.topology.has_value());
  std::vector<std::string> names;
  std::istringstream lines(contents(folder / (GetParam() + ".txt")));
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  const Result<Topology> rest = without(*machine.topology, names);
  ASSERT_FALSE(rest.has_value());
  std::string message = rest.error().message + "\n";
  if (!rest.error().help.empty()) message += "help: " + rest.error().help + "\n";
  const std::filesystem::path expected = folder / (GetParam() + ".expected");
  if (std::getenv("ESPALIER_RECORD") != nullptr) std::ofstream(expected, std::ios::binary) << message;
  EXPECT_EQ(message, contents(expected));
}

INSTANTIATE_TEST_SUITE_P(Files, WithoutErrors, testing::ValuesIn(bad_files()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace espalier
