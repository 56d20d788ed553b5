// Any bytes are read without harm; a plan that is read can be verified, and is written and read back equal; a plan that
// verifies computes what its collective promises.

#include <cstdint>
#include <sstream>
#include <string_view>

#include "base/check.h"
#include "schedule/dependencies.h"
#include "schedule/interpret.h"
#include "schedule/json/schedule_json.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"

namespace {

using namespace espalier;

std::string written(const PlanFile& plan) {
  std::ostringstream out;
  ESPALIER_CHECK(write_schedule(out, plan.schedule, plan.topology, {plan.network_was_given}), "memory takes it all");
  return out.str();
}

void check_meaning(const Schedule& schedule, const Topology& topology) {
  const VerifyReport report = verify(schedule, topology);
  for (const Breach& breach : report.breaches) {
    ESPALIER_CHECK(!describe(breach, schedule, topology).empty(), "a breach can be shown");
  }
  const Dependencies dependencies(schedule);
  if (!report.ok()) return;
  compute_loads(schedule, topology);
  constexpr std::int64_t max_units = 1000;
  if (schedule.units > max_units) return;
  const InterpretCase expected = make_interpret_case(schedule, 1);
  std::vector<UnitValues> buffers = expected.before;
  interpret(schedule, buffers);
  ESPALIER_CHECK(keeps_promise(expected, buffers), "what verifies computes the promise");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<PlanFile> plan = read_plan(text, "fuzz");
  if (!plan) {
    ESPALIER_CHECK(plan.error().message.starts_with("fuzz:"), "an error names its place");
    return 0;
  }
  check_meaning(plan->schedule, plan->topology);
  const std::string once = written(*plan);
  const Result<PlanFile> again = read_plan(once, "written");
  ESPALIER_CHECK(again.has_value(), "what is written can be read");
  ESPALIER_CHECK(written(*again) == once, "reading what was written changes nothing");
  return 0;
}
