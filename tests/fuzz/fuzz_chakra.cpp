// Any bytes, packed or not, are read as a trace without harm; what is read is added to a job that can be checked.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "scenario/workload/chakra.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t max_unpacked = std::size_t{1} << 20U;
  const auto nodes = scenario::read_chakra(bytes, "fuzz", max_unpacked);
  if (!nodes) {
    ESPALIER_CHECK(!nodes.error().message.empty(), "an error says what is wrong");
    return 0;
  }
  scenario::ChakraOptions options;
  options.ranks = {Rank(0), Rank(1)};
  options.groups["1"] = {Rank(0), Rank(1)};
  options.groups["2"] = {Rank(1)};
  const std::array traces{*nodes, *nodes};
  scenario::Job job;
  const auto added = scenario::add_chakra(job, traces, options);
  ESPALIER_CHECK(added.has_value() || !added.error().message.empty(), "a refusal says why");
  return 0;
}
