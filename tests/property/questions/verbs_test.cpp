#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/property/cli/printed.h"
#include "tests/property/questions/ask_all.h"

namespace espalier::test {
namespace {

using Words = std::vector<std::string>;

/// What a flag of a question's call says, or nothing.
std::string value_of(const Question& question, const std::string& flag) {
  const auto found = std::ranges::find(question.call, flag);
  return found == question.call.end() ? "" : *(found + 1);
}

/// A file of this process alone.
std::filesystem::path file_of_process(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("espalier-" + std::to_string(getpid()) + "-" + name);
}

/// A table as nccl-tests writes it, of the times that a network is said to take, or of so many times them.
std::string table_of(const Question& question, const nlohmann::json& results, double slower) {
  std::string text = "# Collective test starting: " + question.call.front() + "_perf\n";
  for (const auto& result : results) {
    const std::string size = result["size"].dump(), count = result["count"].dump();
    const std::string time = std::to_string(result["time"].get<double>() * 1e6 * slower);
    text += size + " " + count + " float sum -1 " + time + " 1 1 0 " + time + " 1 1 0\n";
  }
  return text;
}

/// The damaged network's own words behind a verb's.
Words damaged(Words words, const Question& question) {
  words.insert(words.end(), question.damage.begin(), question.damage.end());
  return words;
}

std::string ask_nccl(const Question& question) {
  Words words = damaged({"nccl", question.machine.front()}, question);
  const std::string profile = value_of(question, "--profile");
  if (profile != "ideal") words.insert(words.end(), {"--profile", profile});
  return check_document(cli::print_of(cli::add_nccl_command, words));
}

std::string ask_probe(const Question& question) {
  const Words words = damaged({"probe", question.machine.front(), "--dry-run", "-s", "1M"}, question);
  return check_document(cli::print_of(cli::add_probe_command, words));
}

/// The damaged network is held against the whole network's own times, or such as are half as long again.
std::string ask_diagnose(const Question& question) {
  nlohmann::json results;
  Question whole = question;
  whole.damage.clear();
  const cli::Printed printed = cli::print_of(cli::add_simulate_command, whole.words("simulate"));
  if (std::string wrong = check_answer(printed, results); !wrong.empty()) return wrong;
  const std::filesystem::path table = file_of_process("table.txt");
  constexpr double slower = 1.5;
  std::ofstream(table) << table_of(question, results, question.damage.empty() ? 1 : slower);
  const std::string profile = value_of(question, "--profile");
  const Words words = damaged({"diagnose", question.machine.front(), table.string(), "--profile", profile}, question);
  std::string wrong = check_document(cli::print_of(cli::add_diagnose_command, words));
  std::filesystem::remove(table);
  return wrong;
}

/// Any, the same for the same question.
std::size_t any_number(const Question& question) {
  std::string text = question.machine.front();
  text.erase(0, text.rfind('/') + 1);
  for (const std::string& word : question.words("")) text += question.machine.front() == word ? "" : word;
  return std::accumulate(text.begin(), text.end(), std::size_t{7}, [](std::size_t sum, char letter) {
    return (sum * 131 + static_cast<unsigned char>(letter)) % 1'000'000'007;
  });
}

std::string ask_compute(const Question& question) {
  constexpr std::array gpus = {"h100-sxm", "a100-80gb", "v100", "b200"};
  const std::size_t some = any_number(question);
  nlohmann::json asked = {{"gpu", gpus[some % gpus.size()]}};
  const std::size_t rows = 1 + some / 7 % 9000;
  if (some / 4 % 2 == 0) {
    asked["product"] = {{"rows", rows}, {"columns", 1 + rows * 3 % 5000}, {"depth", 1 + rows * 7 % 3000}};
  } else {
    asked["attention"] = {{"batch", 1 + rows % 8}, {"heads", 8}, {"sequence", rows}, {"head_size", 64}};
  }
  const std::filesystem::path file = file_of_process("compute.jsonl");
  std::ofstream(file) << asked.dump() << "\n";
  const cli::Printed printed = cli::print_of(cli::add_compute_command, {"compute", "--batch", file.string()});
  std::filesystem::remove(file);
  return check_document(printed);
}

TEST(Questions, OtherVerbsEndInAnAnswerOrAReason) {
  constexpr std::uint64_t few = 8;
  ask_all(few, [](const Question& question) -> std::string {
    constexpr std::array verbs = {ask_nccl, ask_probe, ask_diagnose, ask_compute};
    return verbs[any_number(question) / 16 % verbs.size()](question);
  });
}

}  // namespace
}  // namespace espalier::test
