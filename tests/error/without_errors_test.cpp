#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/recorded_messages.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

const std::filesystem::path without_files = ESPALIER_SOURCE_DIR "/tests/error/without";

/// Each file holds what is to be taken away from a DGX-1V, one name per line.
class WithoutErrors : public testing::TestWithParam<std::string> {};

TEST_P(WithoutErrors, MessageIsAsRecorded) {
  const TopologyReading machine = read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx1v.yaml");
  ASSERT_TRUE(machine.topology.has_value());
  std::vector<std::string> names;
  std::istringstream lines(test::contents(without_files / (GetParam() + ".txt")));
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  const Result<Topology> rest = without(*machine.topology, names);
  ASSERT_FALSE(rest.has_value());
  test::expect_recorded(without_files, GetParam(), test::lines_of(rest.error()));
}

INSTANTIATE_TEST_SUITE_P(Files, WithoutErrors, testing::ValuesIn(test::stems_of(without_files, ".txt")),
                         test::test_name);

}  // namespace
}  // namespace espalier
