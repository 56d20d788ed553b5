// Any bytes are read without harm; what is read as a timeline is written and read back equal. The checksum is mended
// first, so that what lies behind it is tried as well.

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/fnv.h"
#include "schedule/timeline/binary_timeline.h"

namespace {

/// Puts the checksum of all but the last eight bytes there.
void mend_checksum(std::string& bytes) {
  constexpr std::size_t length = 8;
  if (bytes.size() < length) return;
  espalier::Fnv1a checksum;
  checksum.add_text(std::string_view(bytes).substr(0, bytes.size() - length));
  for (std::size_t i = 0; i < length; ++i) {
    bytes[bytes.size() - length + i] = static_cast<char>(static_cast<std::uint8_t>(checksum.value() >> (8 * i)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const bool mended : {false, true}) {
    if (mended) mend_checksum(bytes);
    const auto timeline = read_binary_timeline(bytes, "fuzz");
    if (!timeline) {
      ESPALIER_CHECK(timeline.error().message.starts_with("fuzz: "), "an error says where");
      continue;
    }
    std::ostringstream written;
    ESPALIER_CHECK(write_binary_timeline(written, *timeline).has_value(), "a string takes everything");
    const auto again = read_binary_timeline(written.str(), "written");
    ESPALIER_CHECK(again.has_value() && again->spans == timeline->spans, "reading what was written changes nothing");
  }
  return 0;
}
