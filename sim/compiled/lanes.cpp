#include "sim/compiled/lanes.h"

#include <algorithm>
#include <utility>

namespace espalier::sim {
namespace {

/// By route: a number that is the same for all routes of one (source, destination), dense from 0.
std::vector<std::uint32_t> number_pairs(const Schedule& schedule) {
  using Ends = std::pair<std::uint32_t, std::uint32_t>;
  const auto ends = [&](std::size_t route) {
    const Route found = schedule.route(RouteId(route));
    return Ends(found.src.value(), found.dst.value());
  };
  std::vector<Ends> pairs;
  pairs.reserve(schedule.route_count());
  for (std::size_t i = 0; i < schedule.route_count(); ++i) pairs.push_back(ends(i));
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<std::uint32_t> numbers(schedule.route_count());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<std::uint32_t>(std::ranges::lower_bound(pairs, ends(i)) - pairs.begin());
  }
  return numbers;
}

/// Transfers grouped by pair, in program order within a pair.
std::vector<TransferId> group_by_pair(const Schedule& schedule, const std::vector<std::uint32_t>& pair_of_route) {
  std::vector<std::uint64_t> next(schedule.route_count() + 1, 0);
  const auto pair = [&](const Transfer& transfer) { return pair_of_route[transfer.route.index()]; };
  for (const Transfer& transfer : schedule.transfers) ++next[pair(transfer) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<TransferId> grouped(schedule.transfers.size());
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    grouped[next[pair(schedule.transfers[i])]++] = TransferId(i);
  }
  return grouped;
}

}  // namespace

Lanes make_lanes(const Schedule& schedule) {
  struct Latest {
    std::uint32_t group = 0;  // the pair, plus one, that the transfer belongs to
    TransferId transfer;
  };
  Lanes lanes;
  lanes.next.resize(schedule.transfers.size());
  std::vector<bool> leads(schedule.transfers.size(), true);
  {
    const std::vector<std::uint32_t> pair_of_route = number_pairs(schedule);
    std::vector<Latest> latest(schedule.channel_count());
    for (const TransferId id : group_by_pair(schedule, pair_of_route)) {
      const Transfer& transfer = schedule.transfers[id.index()];
      const std::uint32_t group = pair_of_route[transfer.route.index()] + 1;
      Latest& before = latest[transfer.channel().index()];
      if (before.group == group) {
        lanes.next[before.transfer.index()] = id;
        leads[id.index()] = false;
      }
      before = {group, id};
    }
  }
  lanes.first.reserve(static_cast<std::size_t>(std::ranges::count(leads, true)));
  for (std::size_t i = 0; i < leads.size(); ++i) {
    if (leads[i]) lanes.first.push_back(TransferId(i));
  }
  return lanes;
}

}  // namespace espalier::sim
