#include "tests/property/questions/ask_all.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "tests/property/questions/ask.h"

namespace espalier::test {
namespace {

/// How an answer begins that is none, but says why.
const std::string refused = "refused: ";

/// Of the processor: longer than any of them takes, also in builds with sanitizers.
constexpr unsigned longest_seconds = 300;

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

}  // namespace

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void ask_all(std::uint64_t few, const std::function<std::string(const Question&)>& check) {
  const std::uint64_t first = number_of("ESPALIER_QUESTIONS_FROM", 1);
  const std::uint64_t count = number_of("ESPALIER_QUESTIONS", few);
  const auto seconds = static_cast<unsigned>(number_of("ESPALIER_QUESTIONS_SECONDS", longest_seconds));
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
    const std::vector<std::string> complaints = complaints_of(questions.size(), ask, seconds);
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

std::string check_document(const cli::Printed& printed) {
  using cli::ExitCode;
  if (printed.code == ExitCode::internal_error) return "internal error: " + printed.errors;
  if (printed.code != ExitCode::ok) return printed.errors.empty() ? "refused without a word" : refused + printed.errors;
  return nlohmann::json::accept(printed.text) ? "" : "no JSON: " + printed.text.substr(0, 200);
}

std::string check_answer(const cli::Printed& printed, nlohmann::json& results) {
  if (std::string wrong = check_document(printed); !wrong.empty()) return wrong;
  results = nlohmann::json::parse(printed.text)["results"];
  return results.empty() ? "neither results nor a reason" : "";
}

}  // namespace espalier::test
