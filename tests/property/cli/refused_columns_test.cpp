#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "cli/verbs/commands.h"
#include "planners/planner.h"
#include "tests/property/cli/printed.h"

namespace espalier::cli {
namespace {

using Document = nlohmann::json;

/// By planner: its rows, without the word that says who is best.
std::map<std::string, Document> columns_of(const Document& document) {
  std::map<std::string, Document> columns;
  for (const auto& result : document["results"]) columns[result["algorithm"]].push_back(result);
  return columns;
}

/// A planner that refuses loses its own column and no other: what is shown of the others is what each shows alone, and
/// who refuses is who shows nothing alone.
TEST(RefusedColumnsProperty, OnlyTheirOwnColumnsAreEmpty) {
  const std::vector<std::string> networks[] = {{"lab-mixed"},
                                               {"dgx1v"},
                                               {"dgx1v", "--without", "gpu0-gpu1"},
                                               {"dgx1v-nvlink", "--without", "gpu0"},
                                               {"rtx4090-pcie"},
                                               {"dgx-h100"},
                                               {"ethernet-mixed"}};
  const std::vector<std::string> uses[] = {{"all_gather"}, {"all_reduce"}, {"broadcast"},
                                           {"gather"},     {"all_to_all"}, {"reduce_scatter"},
                                           {"reduce"},     {"scatter"},    {"all_gather", "--shares", "2,1,1,1"}};
  const std::vector<std::string> options[] = {{"--profile", "ideal"}, {"--profile", "nccl-hopper"}};
  Random random(20'261'125);
  std::set<std::string> have_refused, have_run;
  for (int round = 0; round < 24; ++round) {
    const auto& network = networks[random.below(std::size(networks))];
    const auto& use = uses[random.below(std::size(uses))];
    const auto simulate = [&](const std::string& names) {
      std::vector<std::string> words = {"simulate", ESPALIER_SOURCE_DIR "/configs/" + network.front() + ".yaml"};
      words.push_back(use.front());
      words.insert(words.end(), network.begin() + 1, network.end());
      words.insert(words.end(), use.begin() + 1, use.end());
      words.insert(words.end(), {"-a", names, "-b", "16K", "-e", "64K", "-f", "4"});
      const auto& option = options[static_cast<std::size_t>(round) % 2];
      words.insert(words.end(), option.begin(), option.end());
      return print_of(add_simulate_command, words);
    };
    std::string names;
    std::map<std::string, Document> alone;
    for (const planners::Planner& planner : planners::all_planners()) {
      const std::string name(planner.name);
      names += (names.empty() ? "" : ",") + name;
      const Printed printed = simulate(name);
      if (printed.code == ExitCode::ok) alone[name] = columns_of(Document::parse(printed.text))[name];
    }
    SCOPED_TRACE(network.back() + " " + use.front() + " " + use.back());
    const Printed together = simulate(names);
    if (alone.empty()) {
      EXPECT_NE(together.code, ExitCode::ok);
      continue;
    }
    ASSERT_EQ(together.code, ExitCode::ok);
    const Document document = Document::parse(together.text);
    EXPECT_EQ(columns_of(document), alone);
    std::set<std::string> refused;
    for (const auto& refusal : document["refused"]) refused.insert(refusal["algorithm"]);
    for (const planners::Planner& planner : planners::all_planners()) {
      const std::string name(planner.name);
      EXPECT_EQ(refused.contains(name), !alone.contains(name)) << name;
      (alone.contains(name) ? have_run : have_refused).insert(name);
    }
  }
  for (const planners::Planner& planner : planners::all_planners()) {
    EXPECT_EQ(have_run.contains(std::string(planner.name)), !planner.needs_matrix) << planner.name;
  }
  EXPECT_GE(have_refused.size(), 6U);
}

}  // namespace
}  // namespace espalier::cli
