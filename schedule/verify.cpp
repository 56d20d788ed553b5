#include "schedule/verify.h"

#include <fmt/format.h>

#include "base/check.h"
#include "schedule/breach_list.h"

namespace espalier {

std::string_view to_string(Rule rule) {
  switch (rule) {
    case Rule::S1: return "S1";
    case Rule::S2: return "S2";
    case Rule::S3: return "S3";
    case Rule::S4: return "S4";
    case Rule::S5: return "S5";
    case Rule::S6: return "S6";
    case Rule::S7: return "S7";
  }
  ESPALIER_CHECK(false, "a rule without a name");
}

std::string describe(const Breach& breach, const Schedule& schedule, const Topology& topology) {
  if (breach.transfer.is_none()) return fmt::format("{}: {}", to_string(breach.rule), breach.message);
  std::string ends;
  const RouteId route = schedule.transfers[breach.transfer.index()].route;
  if (route.index() < schedule.route_count()) {
    const auto [src, dst, links] = schedule.route(route);
    if (src.index() < topology.rank_count() && dst.index() < topology.rank_count()) {
      ends = fmt::format(" ({} to {})", topology.rank_name(src), topology.rank_name(dst));
    }
  }
  return fmt::format("{}, transfer {}{}: {}", to_string(breach.rule), breach.transfer.value(), ends, breach.message);
}

VerifyReport verify(const Schedule& schedule, const Topology& topology, std::size_t max_reported) {
  BreachList breaches(max_reported);
  verify_structure(schedule, topology, breaches);
  if (breaches.empty()) verify_meaning(schedule, topology, breaches);
  return std::move(breaches).report();
}

}  // namespace espalier
