// Any bytes are read without harm; what is read as a timeline is written and read back equal.

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string_view>

#include "base/check.h"
#include "schedule/timeline/chrome_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  auto timeline = read_chrome_trace({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!timeline) {
    ESPALIER_CHECK(timeline.error().message.starts_with("fuzz:"), "an error says where");
    return 0;
  }
  std::ranges::stable_sort(timeline->spans, {}, &Span::begin);
  std::ostringstream written;
  ESPALIER_CHECK(write_chrome_trace(written, *timeline).has_value(), "a string takes everything");
  const auto again = read_chrome_trace(written.str(), "written");
  ESPALIER_CHECK(again.has_value(), "what is written can be read");
  ESPALIER_CHECK(again->spans == timeline->spans && again->title == timeline->title &&
                     again->origin == timeline->origin && again->rank_names == timeline->rank_names &&
                     again->link_names == timeline->link_names,
                 "reading what was written changes nothing");
  return 0;
}
