#pragma once

// Tested by: tests/options/options_test.py

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/suggest.h"
#include "compute/memory.h"
#include "compute/model.h"

namespace espalier::cli {

/// Members of a JSON object, each with the type it must have; remembers which were asked for, so that others are
/// errors.
class Members {
 public:
  Members(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::int64_t whole(const char* key, std::int64_t otherwise, std::int64_t least = 0);
  /// One that must be there.
  std::int64_t needed(const char* key, std::int64_t least = 1);
  /// A list of them; empty where it is left out.
  std::vector<std::int64_t> wholes(const char* key);
  double number(const char* key, double otherwise);
  bool flag(const char* key, bool otherwise);
  std::string text(const char* key, const std::string& otherwise);
  /// Asks for a member without reading it.
  const nlohmann::json* find(const char* key);
  void refuse(std::string message, std::string help = {});
  template <class T>
  T take(Result<T> result, T otherwise) {
    if (result) return *result;
    refuse(result.error().message, result.error().help);
    return otherwise;
  }

  /// Errors: the first that was found, or a member that nobody asked for.
  [[nodiscard]] Result<void> finish() const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

/// The value of a name.
template <class T, std::size_t N>
T named(Members& members, const char* key, const std::array<std::pair<std::string_view, T>, N>& names, T otherwise) {
  const std::string written = members.text(key, "");
  if (written.empty()) return otherwise;
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    if (name == written) return value;
    known.push_back(name);
  }
  members.refuse(fmt::format("there is no {} '{}'", key, written.substr(0, 60)), suggest(written, known));
  return otherwise;
}

/// A model, what a rank has of it, and how it is computed, by the names of docs/compute.md.
struct Workload {
  compute::ModelShape model;
  compute::Slice slice;
  compute::Software software;
  compute::Recompute recompute = compute::Recompute::none;
};
Workload read_workload(Members& members);

/// Of a step on many ranks; without tables of calls, which ones it makes.
Result<nlohmann::ordered_json> answer_training(const compute::Gpu& gpu, const nlohmann::json& asked);

/// Answers one question of `compute --batch`. Errors: invalid_input, with what is wrong with it.
Result<nlohmann::ordered_json> answer_question(const nlohmann::json& question);

}  // namespace espalier::cli
