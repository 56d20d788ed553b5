#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/property/cli/printed.h"
#include "tests/property/questions/ask.h"
#include "tests/property/questions/question.h"

/// ESPALIER_QUESTIONS: how many questions each test asks; ESPALIER_QUESTIONS_FROM: the first seed;
/// ESPALIER_QUESTIONS_SHOWN: what was refused is shown; ESPALIER_QUESTIONS_PART: by how many per cent link and fair may
/// part.
namespace espalier::test {
namespace {

using cli::ExitCode;
using cli::Printed;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// How an answer begins that is none, but says why.
const std::string refused = "refused: ";

/// Longer than any of them takes, also on a machine that is busy.
constexpr unsigned longest_seconds = 600;

/// Fails where there is something to complain of; true where there was an answer.
bool judge(const Question& question, std::uint64_t seed, const std::string& complaint) {
  const bool is_refused = complaint.starts_with(refused);
  if (is_refused && std::getenv("ESPALIER_QUESTIONS_SHOWN") != nullptr) {
    std::cout << question.text() << "\n" << complaint << std::flush;
  }
  if (!is_refused) {
    EXPECT_EQ(complaint, "") << "seed " << seed << ": " << question.text();
  }
  return complaint.empty();
}

void ask_all(std::uint64_t few, const std::function<std::string(const Question&)>& check) {
  const std::uint64_t first = number_of("ESPALIER_QUESTIONS_FROM", 1);
  const std::uint64_t count = number_of("ESPALIER_QUESTIONS", few);
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("espalier-questions-" + std::to_string(getpid()))).string();
  std::filesystem::create_directories(folder);
  std::uint64_t answered = 0;
  constexpr std::uint64_t of_a_process = 64, told_each = 6400;
  for (std::uint64_t begin = first; begin < first + count; begin += of_a_process) {
    std::vector<Question> questions;
    for (std::uint64_t seed = begin; seed < std::min(begin + of_a_process, first + count); ++seed) {
      questions.push_back(make_question(seed, folder));
    }
    const auto ask = [&](std::size_t i) { return check(questions[i]); };
    const std::vector<std::string> complaints = complaints_of(questions.size(), ask, longest_seconds);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (judge(questions[i], begin + i, complaints[i])) ++answered;
      const bool is_kept = !complaints[i].empty() && !complaints[i].starts_with(refused);
      if (!is_kept && questions[i].machine.front().starts_with(folder)) {
        std::filesystem::remove(questions[i].machine.front());
      }
    }
    if ((begin - first) % told_each == 0 && begin > first) {
      std::cout << begin - first << " asked, " << answered << " answered\n" << std::flush;
    }
  }
  EXPECT_GE(answered, count / 3) << "most questions have an answer";
  if (std::filesystem::is_empty(folder)) std::filesystem::remove(folder);
}

/// What is wrong with an answer whatever the question was; `results` of one that has any.
std::string check_answer(const Printed& printed, nlohmann::json& results) {
  if (printed.code == ExitCode::internal_error) return "internal error: " + printed.errors;
  if (printed.code != ExitCode::ok) return printed.errors.empty() ? "refused without a word" : refused + printed.errors;
  const auto document = nlohmann::json::parse(printed.text, nullptr, false);
  if (document.is_discarded()) return "no JSON: " + printed.text.substr(0, 200);
  results = document["results"];
  if (results.empty()) return "neither results nor a reason";
  return "";
}

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
