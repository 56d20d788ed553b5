// Any bytes are read as a run (nccl-tests, results, timelines) without harm; what is read keeps what readers promise,
// and compares with itself without an error.

#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "compare/compare_results.h"
#include "compare/compare_timelines.h"
#include "compare/read/read_run.h"

namespace {

void check_rows(const espalier::compare::Measurements& runs) {
  using namespace espalier;
  ESPALIER_CHECK(!runs.rows.empty(), "a file without rows is an error");
  for (const compare::Measurement& row : runs.rows) {
    ESPALIER_CHECK(row.size.count >= 0 && row.size <= max_message_size, "sizes are in range");
    ESPALIER_CHECK(std::isfinite(row.seconds) && row.seconds >= 0, "times are times");
    ESPALIER_CHECK(row.line > 0, "rows say where they are");
  }
  const auto compared = compare::compare_results(runs, runs);
  ESPALIER_CHECK(compared.has_value() && compared->errors.worst == 0, "a file has no error against itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const auto run = compare::read_run({reinterpret_cast<const char*>(data), size}, "fuzz", {});
  if (!run) {
    ESPALIER_CHECK(run.error().message.starts_with("fuzz:"), "an error says where");
    return 0;
  }
  if (const auto* runs = std::get_if<compare::Measurements>(&*run)) {
    check_rows(*runs);
    return 0;
  }
  const Timeline& timeline = std::get<Timeline>(*run);
  const compare::TimelineComparison compared = compare::compare_timelines(timeline, timeline);
  ESPALIER_CHECK(compared.transfers.errors.worst == 0 && compared.total.a == compared.total.b,
                 "a timeline has no error against itself");
  return 0;
}
