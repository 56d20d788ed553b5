#include "schedule/verify/verify.h"

#include <fmt/format.h>

#include "base/check.h"
#include "schedule/relays.h"
#include "schedule/verify/breach_list.h"

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
    case Rule::S8: return "S8";
    case Rule::S9: return "S9";
  }
  ESPALIER_CHECK(false, "a rule without a name");
}

std::string describe(const Breach& breach, const Schedule& schedule, const Topology& topology) {
  if (breach.transfer.is_none()) return fmt::format("{}: {}", to_string(breach.rule), breach.message);
  std::string ends;
  const RouteId route = schedule.transfers[breach.transfer.index()].route;
  if (route.index() < schedule.route_count()) {
    const auto [src, dst, links] = schedule.route(route);
    const auto has_name = [&](Rank end) {
      return end.index() < end_count(schedule) && (is_relay(schedule, end) || end.index() < topology.rank_count()) &&
             node_of_end(schedule, topology, end).index() < topology.node_count();
    };
    if (has_name(src) && has_name(dst)) {
      ends = fmt::format(" ({} to {})", end_name(schedule, topology, src), end_name(schedule, topology, dst));
    }
  }
  return fmt::format("{}, transfer {}{}: {}", to_string(breach.rule), breach.transfer.value(), ends, breach.message);
}

VerifyReport verify(const Schedule& schedule, const Topology& topology, std::size_t max_reported) {
  BreachList breaches(max_reported);
  verify_structure(schedule, topology, breaches);
  if (breaches.empty()) {
    verify_meaning(schedule, topology, breaches);
    verify_relays(schedule, topology, breaches);
  }
  return std::move(breaches).report();
}

namespace {

Result<void> refuse_breaches(const VerifyReport& report, std::string_view name) {
  if (report.ok()) return {};
  const Breach& first = report.breaches.front();
  return fail(ErrorCode::invalid_input,
              fmt::format("{} breaks rule {}: {}", name, to_string(first.rule), first.message),
              "espalier verify lists every breach");
}

}  // namespace

Result<void> require_verified(const Schedule& schedule, const Topology& topology, std::string_view name) {
  return refuse_breaches(verify(schedule, topology, 1), name);
}

Result<void> require_promise(const Schedule& schedule, std::string_view name) {
  ESPALIER_CHECK(schedule.relays.empty(), "relays are of a network");
  std::vector<Node> ranks(schedule.collective.rank_count);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank].id = fmt::format("rank{}", rank);
  const auto unlinked = Topology::make("ranks", std::move(ranks), {});
  if (!unlinked) return tl::unexpected(unlinked.error());
  BreachList breaches(1);
  verify_structure(schedule, *unlinked, breaches, Routes::unchecked);
  if (breaches.empty()) verify_meaning(schedule, *unlinked, breaches);
  return refuse_breaches(std::move(breaches).report(), name);
}

Result<void> require_structure(const Schedule& schedule, const Topology& topology, std::string_view name) {
  BreachList breaches(1);
  verify_structure(schedule, topology, breaches);
  return refuse_breaches(std::move(breaches).report(), name);
}

}  // namespace espalier
