// Any bytes are read as a run (nccl-tests, results, timelines) without harm; what is read keeps what readers promise,
// and compares with itself without an error.

#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "compare/compare_results.h"
#include "compare/compare_timelines.h"
#include "compare/read/port_counters.h"
#include "compare/read/rank_calls.h"
#include "compare/read/read_run.h"
#include "compare/stragglers.h"

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

/// A rank beside itself comes late to nothing.
void check_record(std::string_view text) {
  using namespace espalier;
  const auto record = compare::read_rank_calls(text, "fuzz", 0);
  if (!record) {
    ESPALIER_CHECK(record.error().message.starts_with("fuzz:"), "an error says where");
    return;
  }
  compare::RankCalls other = *record;
  ++other.rank;
  const auto found = compare::find_stragglers(std::vector{*record, other});
  ESPALIER_CHECK(found.calls > 0 && found.cost >= 0 && std::isfinite(found.cost) && std::isfinite(found.span),
                 "costs are times");
}

/// Ports in trouble say which and why.
void check_counters(std::string_view text) {
  using namespace espalier;
  const auto troubles = compare::read_port_counters(text, "fuzz");
  ESPALIER_CHECK(troubles.has_value() || !compare::has_port_counters(text), "what is recognised is read");
  if (!troubles) {
    ESPALIER_CHECK(troubles.error().message.starts_with("fuzz:"), "an error says where");
    return;
  }
  for (const compare::PortTrouble& trouble : *troubles) {
    ESPALIER_CHECK(trouble.line > 0 && !trouble.says.empty(), "troubles say where they are and what");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (compare::is_rank_record(text)) check_record(text);
  check_counters(text);
  const auto run = compare::read_run(text, "fuzz", {});
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
