#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "cli/verbs/commands.h"
#include "tests/property/cli/printed.h"

namespace espalier::cli {
namespace {

/// A machine, a collective, an algorithm and options of which each changes what is simulated.
std::vector<std::string> pick_run(Random& random) {
  const auto pick = [&](std::span<const std::string> of) { return of[random.below(of.size())]; };
  const std::string machines[] = {"dgx1v-degraded", "rtx4090-pcie", "mi300x", "dgx1v-nvlink"};
  const std::string collectives[] = {"all_gather", "all_reduce", "broadcast", "all_to_all", "reduce_scatter", "gather"};
  const std::string algorithms[] = {"ring", "tree", "packing", "flat", "pairwise", "ring,tree", "auto"};
  const std::string sizes[] = {"0", "1000", "64K", "3M"};
  std::vector<std::string> words = {ESPALIER_SOURCE_DIR "/configs/" + pick(machines) + ".yaml", pick(collectives)};
  for (const std::string& word : {std::string("-a"), pick(algorithms), std::string("-s"), pick(sizes),
                                  std::string("--profile"), std::string("ideal")}) {
    words.push_back(word);
  }
  const std::vector<std::string> options[] = {{"-d", "double"},
                                              {"-d", "int8"},
                                              {"--chunk", "4K"},
                                              {"--chunk", "100000"},
                                              {"--model", "fair"},
                                              {"--max-trees", "1"},
                                              {"--max-depth", "3"},
                                              {"--k", "2"},
                                              {"--gap", "10%"},
                                              {"-r", "3"},
                                              {"--shares", "3,1,1,0,2,2,1,5"},
                                              {"--without", "gpu3"},
                                              {"--ranks", "gpu[0-4]"},
                                              {"--protocol", "ll128"},
                                              {"--payload", "70%"},
                                              {"--launch", "5us"},
                                              {"--copy-engines", "1"},
                                              {"--jitter", "5%", "--seed", "9"}};
  for (const std::vector<std::string>& option : options) {
    const bool is_given = std::ranges::find(words, option.front()) != words.end();
    if (!is_given && random.below(8) == 0) words.insert(words.end(), option.begin(), option.end());
  }
  return words;
}

/// The time that `simulate` gives what was explained.
double simulated_time(const nlohmann::json& results, const std::string& explained) {
  for (const nlohmann::json& result : results) {
    if (result["planner"] == explained) return result["time"];
  }
  ADD_FAILURE() << explained << " was not simulated";
  return -1;
}

TEST(ExplainProperty, ExplainsWhatSimulatePredictsWithTheSameOptions) {
  Random random(531);
  int explained_runs = 0;
  for (int round = 0; round < 160; ++round) {
    std::vector<std::string> words = pick_run(random);
    std::string shown;
    for (const std::string& word : words) shown += " " + word;
    SCOPED_TRACE(shown);
    words.insert(words.begin(), "simulate");
    const Printed simulated = print_of(add_simulate_command, words);
    words.front() = "explain";
    const Printed explained = print_of(add_explain_command, words);
    ASSERT_EQ(simulated.code, explained.code);
    if (simulated.code != ExitCode::ok) continue;
    const auto of_explain = nlohmann::json::parse(explained.text);
    const auto of_simulate = nlohmann::json::parse(simulated.text);
    const double time = of_explain["simulation"]["time"];
    EXPECT_EQ(time, simulated_time(of_simulate["results"], of_explain["explained"]));
    EXPECT_EQ(of_explain["simulation"]["circumstances"], of_simulate["circumstances"]);
    EXPECT_EQ(of_explain["simulation"]["model"], of_simulate["model"]);
    EXPECT_EQ(of_explain["simulation"]["type"], of_simulate["results"][0]["type"]);
    ++explained_runs;
  }
  EXPECT_GE(explained_runs, 40);
}

}  // namespace
}  // namespace espalier::cli
