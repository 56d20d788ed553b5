#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/property/cli/printed.h"
#include "tests/property/questions/question.h"

/// ESPALIER_QUESTIONS: how many questions each test asks; ESPALIER_QUESTIONS_FROM: the first seed;
/// ESPALIER_QUESTIONS_SECONDS: how much of the processor one may take; ESPALIER_QUESTIONS_SHOWN: what was refused is
/// shown.
namespace espalier::test {

/// A number from the environment, or another one.
std::uint64_t number_of(const char* variable, std::uint64_t otherwise);

/// Asks so many questions, or as many as the environment says; fails for each of which `check` has something to
/// complain of, and where it refuses more than two thirds.
void ask_all(std::uint64_t few, const std::function<std::string(const Question&)>& check);

/// What is wrong with an answer whatever the question was; of one that is none, but says why, that.
std::string check_document(const cli::Printed& printed);

/// The same of one with results, which are given to `results`.
std::string check_answer(const cli::Printed& printed, nlohmann::json& results);

}  // namespace espalier::test
