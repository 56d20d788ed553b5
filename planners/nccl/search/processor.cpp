#include "planners/nccl/search/processor.h"

#include <charconv>
#include <optional>

namespace espalier::planners {
namespace {

/// The number behind the last dash, where there are two.
std::optional<int> model_number(std::string_view text) {
  const std::size_t first = text.find('-'), last = text.rfind('-');
  if (first == last) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + last + 1, text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Source: github.com/NVIDIA/nccl, src/graph/topo.h, topo.cc: sockets of Broadwell, Skylake, Sapphire Rapids, Emerald
// Rapids and newer.
float between_intel(int model) { return model >= 0xCF ? 40 : model >= 0x8F ? 22 : model >= 0x55 ? 10 : 6; }
constexpr float between_amd = 16, between_arm = 6, between_power = 32;

}  // namespace

Processor parse_processor(std::string_view model) {
  if (model.starts_with("intel")) {
    constexpr int skylake = 0x55;
    return {ProcessorMaker::intel, between_intel(model_number(model).value_or(skylake)), true};
  }
  if (model.starts_with("amd")) return {ProcessorMaker::amd, between_amd, true};
  if (model.starts_with("arm")) return {ProcessorMaker::other, between_arm, true};
  if (model.starts_with("power")) return {ProcessorMaker::other, between_power, true};
  return {};
}

Processor usual_processor(int capability) {
  if (capability >= 80 && capability < 90) return parse_processor("amd");
  return parse_processor(capability >= 100 ? "intel-6-207" : capability >= 90 ? "intel-6-143" : "intel-6-79");
}

}  // namespace espalier::planners
