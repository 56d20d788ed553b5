// Any bytes are read as a traffic matrix, in each form, and as routed tokens, without harm; what is read is a matrix
// that an all_to_all takes.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schedule/collective.h"
#include "schedule/traffic/traffic_matrix.h"

namespace {

using namespace espalier;

void check(const Result<TrafficMatrix>& read) {
  if (!read) {
    ESPALIER_CHECK(read.error().message.starts_with("fuzz:"), "an error says where");
    return;
  }
  ESPALIER_CHECK(read->blocks.size() == read->ranks * read->ranks, "a matrix is square");
  ESPALIER_CHECK(read->largest_line() > 0, "somebody sends");
  ESPALIER_CHECK(make_collective(CollectiveKind::all_to_all, read->ranks, std::nullopt, read->blocks).has_value(),
                 "what is read is a collective's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(parse_traffic(text, "fuzz"));
  check(parse_routing(text, "fuzz", 4, {.bytes_per_token = 8}));
  check(parse_routing(text, "fuzz", 3, {.experts = 6, .deduplicated = true}));
  return 0;
}
