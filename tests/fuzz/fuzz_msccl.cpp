// Any bytes are read as MSCCL XML, as a plan of MSCCL++, or as NCCL's rings, without harm; a schedule that comes of
// them can be verified, and written and read again.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schedule/formats/formats.h"
#include "schedule/verify/verify.h"
#include "topology/generate/generate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  if (size == 0) return 0;
  FullyConnectedOptions options;
  options.ranks = 2 + data[0] % 4;
  const auto topology = generate_fully_connected(options);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto schedule = (data[0] & 0x80U) != 0 ? import_nccl_rings(text, "fuzz", *topology, CollectiveKind::all_reduce)
                                               : import_schedule(text, "fuzz", *topology);
  if (!schedule) {
    ESPALIER_CHECK(!schedule.error().message.empty(), "a refusal says why");
    return 0;
  }
  if (!verify(*schedule, *topology).ok()) return 0;
  for (const char* format : {"msccl", "mscclpp"}) {
    const auto files =
        export_schedule(*schedule, *topology, format, {.size = {}, .element_size = 4, .dialect = "astra"});
    ESPALIER_CHECK(files.has_value() || !files.error().message.empty(), "a refusal says why");
    if (!files) continue;
    const auto again = import_schedule(files->front().bytes, "written", *topology);
    ESPALIER_CHECK(again.has_value() && verify(*again, *topology).ok(), "what is written can be read");
  }
  return 0;
}
