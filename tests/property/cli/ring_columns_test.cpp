#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verbs/commands.h"
#include "tests/property/cli/printed.h"
#include "topology/generate/generate.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

nlohmann::json results_of(const std::string& machine, const std::string& columns,
                          const std::vector<std::string>& sizes) {
  std::vector<std::string> words = {"simulate", machine, "all_reduce", "-a", columns, "--profile", "ideal"};
  words.insert(words.end(), sizes.begin(), sizes.end());
  const Printed printed = print_of(add_simulate_command, words);
  EXPECT_EQ(printed.code, ExitCode::ok);
  nlohmann::json rings = nlohmann::json::array();
  if (printed.code != ExitCode::ok) return rings;
  const auto document = nlohmann::json::parse(printed.text);
  for (const auto& result : document["results"]) {
    if (result["algorithm"] == "ring") rings.push_back(result);
  }
  return rings;
}

/// A ring is the same alone and beside others, and at one size of many; also where its stored schedule would deal whole
/// shards to the rings, as on the larger torus (648 ranks, six rings).
TEST(RingColumns, AreTheSameWhateverIsBeside) {
  const auto folder = std::filesystem::path(testing::TempDir());
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{4, 4, 8}, std::vector<std::int64_t>{9, 9, 8}}) {
    GridOptions options;
    options.dims = dims;
    const auto torus = generate_torus(options);
    ASSERT_TRUE(torus);
    const std::string machine = (folder / (torus->name() + "-ring-columns.yaml")).string();
    std::ofstream(machine) << write_topology(*torus);
    SCOPED_TRACE(machine);
    const std::vector<std::string> sizes = {"-b", "1M", "-e", "256M", "-f", "16"};
    const auto alone = results_of(machine, "ring", sizes);
    ASSERT_EQ(alone.size(), 3U);
    EXPECT_EQ(results_of(machine, "star,ring", sizes), alone);
    EXPECT_EQ(results_of(machine, "ring", {"-s", "16M"})[0], alone[1]);
  }
}

}  // namespace
}  // namespace espalier::cli
