#include "planners/classic/classic.h"
#include "planners/classic/partners.h"

namespace espalier::planners {

Result<Schedule> plan_oneshot(const PlanningProblem& problem, const Collective& collective) {
  constexpr std::uint32_t max_exchange_ranks = 256;
  if (collective.kind != CollectiveKind::all_reduce) {
    return fail(ErrorCode::unsupported, "oneshot does not plan " + std::string(to_string(collective.kind)),
                "use flat, whose trees have the fewest steps");
  }
  if (collective.rank_count > max_exchange_ranks) {
    return fail(ErrorCode::too_large,
                "oneshot sends all of each of " + std::to_string(collective.rank_count) +
                    " inputs to every other rank; its limit is " + std::to_string(max_exchange_ranks),
                "use flat or recursive");
  }
  const Partners partners(problem, "oneshot");
  Schedule schedule(collective, problem.topology().name(), "oneshot");
  schedule.units = 1;
  schedule.slices.push_back({0, 1, {}, {}});
  // In the same order at no two ranks: at any time each receives from another one.
  for (std::size_t step = 1; step < collective.rank_count; ++step) {
    for (std::size_t at = 0; at < collective.rank_count; ++at) {
      const Rank from = partners.order()[at];
      const Rank to = partners.order()[(at + step) % collective.rank_count];
      const Result<std::vector<LinkId>> links = partners.route(from, to);
      if (!links) return tl::unexpected(links.error());
      schedule.add_transfer(schedule.add_route(from, to, *links), SliceId(0), 1, Action::reduce_input, ChannelId(0));
    }
  }
  return schedule;
}

}  // namespace espalier::planners
