#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "cli/verbs/commands.h"
#include "tests/property/cli/printed.h"

namespace espalier::cli {
namespace {

/// What simulate calls the best at a size is the planner of a column that takes the least time there, auto's included.
TEST(BestProperty, IsTheFastestOfAllColumns) {
  const std::string machines[] = {"dgx1v-degraded", "rtx4090-pcie", "mi300x", "torus-4x4x4", "dgx-h100-x4"};
  const std::string collectives[] = {"all_gather", "all_reduce", "broadcast", "all_to_all"};
  const std::string columns[] = {"ring,tree,packing,auto", "auto,ring", "flat,auto,packing", "ring,auto,tree"};
  const std::vector<std::string> options[] = {
      {"--profile", "ideal"}, {"--profile", "nccl-hopper"}, {"--profile", "ideal", "--jitter", "5%", "--seed", "9"}};
  Random random(157);
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> words = {"simulate",
                                      ESPALIER_SOURCE_DIR "/configs/" + machines[random.below(5)] + ".yaml",
                                      collectives[random.below(4)],
                                      "-a",
                                      columns[random.below(4)],
                                      "-b",
                                      "1K",
                                      "-e",
                                      "4M",
                                      "-f",
                                      "16"};
    const auto& option = options[random.below(3)];
    words.insert(words.end(), option.begin(), option.end());
    std::string shown;
    for (const std::string& word : words) shown += " " + word;
    SCOPED_TRACE(shown);
    const Printed printed = print_of(add_simulate_command, words);
    if (printed.code != ExitCode::ok) continue;
    const auto document = nlohmann::json::parse(printed.text);
    for (const auto& winner : document["winners"]) {
      double least = -1, of_winner = -1;
      for (const auto& result : document["results"]) {
        if (result["size"] != winner["size"]) continue;
        const double time = result["time"];
        if (least < 0 || time < least) least = time;
        if (result["planner"] == winner["algorithm"]) of_winner = of_winner < 0 ? time : std::min(of_winner, time);
      }
      EXPECT_EQ(of_winner, least) << winner;
      ++compared;
    }
  }
  EXPECT_GE(compared, 50);
}

/// At the ends of its regions nobody that simulate shows beats whom tune takes by more than the tolerance.
TEST(BestProperty, NobodyBeatsWhomTuneTakes) {
  int compared = 0;
  for (const char* name : {"dgx1v-degraded", "rtx4090-pcie", "mi300x"}) {
    const std::string machine = ESPALIER_SOURCE_DIR "/configs/" + std::string(name) + ".yaml";
    for (const char* collective : {"all_gather", "all_reduce", "broadcast"}) {
      SCOPED_TRACE(name + std::string(" ") + collective);
      const Printed tuned = print_of(
          add_tune_command, {"tune", machine, collective, "-e", "16M", "--tolerance", "1%", "--profile", "ideal"});
      ASSERT_EQ(tuned.code, ExitCode::ok);
      const auto tuning = nlohmann::json::parse(tuned.text);
      for (const auto& region : tuning["regions"]) {
        EXPECT_GE(region["ahead_least"], 1.0);
        for (const char* end : {"from", "to"}) {
          const std::string size = region[end]["size"].dump();
          const Printed simulated = print_of(add_simulate_command, {"simulate", machine, collective, "-a", "all,auto",
                                                                    "-s", size, "--profile", "ideal"});
          ASSERT_EQ(simulated.code, ExitCode::ok);
          const double taken = region[end]["time"];
          const auto simulation = nlohmann::json::parse(simulated.text);
          for (const auto& result : simulation["results"]) {
            if (result["algorithm"] == "lp")
              continue;  // Not planned to be chosen where packing's loads are at the bound.
            EXPECT_LE(taken, 1.0101 * static_cast<double>(result["time"])) << result["algorithm"] << " at " << size;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GE(compared, 100);
}

}  // namespace
}  // namespace espalier::cli
