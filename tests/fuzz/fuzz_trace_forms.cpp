// Any text is read as GOAL, compiled or not, and as a trace of the PyTorch profiler without harm; what is read is added
// to a job.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "scenario/workload/trace_forms.h"

namespace {

using namespace espalier;

void add(const std::vector<std::vector<scenario::ChakraNode>>& traces, scenario::ChakraOptions options) {
  options.ranks = {Rank(0), Rank(1), Rank(2)};
  scenario::Job job;
  const auto added = scenario::add_chakra(job, traces, options);
  ESPALIER_CHECK(added.has_value() || !added.error().message.empty(), "a refusal says why");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto goal = scenario::read_goal(text, "fuzz.goal", 3);
  ESPALIER_CHECK(goal.has_value() || !goal.error().message.empty(), "an error says what is wrong");
  if (goal) add(*goal, {});
  const auto compiled = scenario::read_goal_binary(text, "fuzz.bin", 3);
  ESPALIER_CHECK(compiled.has_value() || !compiled.error().message.empty(), "an error says what is wrong");
  if (compiled) add(*compiled, {});
  const auto kineto = scenario::read_kineto(text, "fuzz.json", 2);
  ESPALIER_CHECK(kineto.has_value() || !kineto.error().message.empty(), "an error says what is wrong");
  const auto spmd = scenario::read_kineto(text, "fuzz.json", 1, scenario::WaitReading::most, true);
  ESPALIER_CHECK(spmd.has_value() || !spmd.error().message.empty(), "an error says what is wrong");
  if (!kineto) return 0;
  scenario::ChakraOptions options;
  for (const auto& [name, ranks] : kineto->groups) {
    for (const std::size_t rank : ranks) options.groups[name].emplace_back(rank);
  }
  add({kineto->nodes, kineto->nodes}, options);
  return 0;
}
