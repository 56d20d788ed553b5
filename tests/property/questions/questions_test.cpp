#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/property/cli/printed.h"
#include "tests/property/questions/ask_all.h"

/// ESPALIER_QUESTIONS_PART: by how many per cent link and fair may part.
namespace espalier::test {
namespace {

using cli::Printed;

/// Half a picosecond is what a bound in seconds may be rounded by.
constexpr double rounding = 1e-9;

/// By how much bytes and what lanes pay for chunks may take longer than both, one after the other.
constexpr double summed = 1.1;

TEST(Questions, NoneEndsInAnInternalErrorOrBelowItsBound) {
  ask_all(40, [](const Question& question) -> std::string {
    nlohmann::json results;
    const Printed printed = cli::print_of(cli::add_simulate_command, question.words("simulate"));
    if (std::string wrong = check_answer(printed, results); !wrong.empty()) return wrong;
    for (const auto& result : results) {
      const std::string algorithm = result["algorithm"];
      if (!result["time"].is_number() || result["time"] < 0) return algorithm + " has no time";
      if (result["of_bound"] > 1 + rounding) return algorithm + " beats its bound: " + result["of_bound"].dump();
    }
    return "";
  });
}

/// How long the busiest link of each run moves bytes, in seconds, by what ran.
std::map<std::string, double> busiest_of(const nlohmann::json& document) {
  std::map<std::string, double> seconds;
  for (const auto& limit : document["limits"]) {
    for (const auto& result : document["results"]) {
      if (result["algorithm"] != limit["algorithm"] || limit["links"].empty()) continue;
      seconds[result["planner"]] = limit["links"][0]["busy"].get<double>() * result["time"].get<double>();
    }
  }
  return seconds;
}

/// With the same chunks, on damaged networks. docs/fair.md names the reasons: what lanes pay for each chunk comes
/// beside the bytes in `fair` (all that share a link begin and end together), and behind others' turns in `link`.
TEST(Questions, LinkAndFairPartByNoMoreThanTheirReasonsExplain) {
  const double most = 1 + static_cast<double>(number_of("ESPALIER_QUESTIONS_PART", 40)) / 100;
  constexpr std::uint64_t few = 20;
  ask_all(few, [most](const Question& question) -> std::string {
    nlohmann::json of_link, of_fair;
    const std::string chunk = question.damage.size() % 4 == 0 ? "16M" : "256K";
    const auto ask = [&](const std::string& model) {
      return cli::print_of(cli::add_simulate_command,
                           question.words("simulate", {"--model", model, "--chunk", chunk, "--ahead", "0"}));
    };
    const Printed printed = ask("link");
    if (std::string wrong = check_answer(printed, of_link); !wrong.empty()) return wrong;
    if (std::string wrong = check_answer(ask("fair"), of_fair); !wrong.empty()) return wrong;
    const auto busiest = busiest_of(nlohmann::json::parse(printed.text));
    for (const auto& link : of_link) {
      for (const auto& fair : of_fair) {
        if (link["algorithm"] != fair["algorithm"] || link["planner"] != fair["planner"]) continue;
        if (link.value("protocol", "") != fair.value("protocol", "")) continue;
        const double in_link = link["time"], in_fair = fair["time"];
        const auto moving = busiest.find(link["planner"]);
        const double one_after_the_other = in_link + (moving == busiest.end() ? 0 : moving->second);
        if (in_fair > std::max(most * in_link, summed * one_after_the_other) || in_link > most * in_fair) {
          return link["planner"].get<std::string>() + ": fair " + fair["time"].dump() + " s, link " +
                 link["time"].dump() + " s, chunk " + chunk;
        }
      }
    }
    return "";
  });
}

}  // namespace
}  // namespace espalier::test
