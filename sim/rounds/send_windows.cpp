#include "sim/rounds/send_windows.h"

#include <bit>

#include "schedule/relays.h"

namespace espalier::sim {

void SendWindows::begin(const CompiledSchedule& compiled, Rounds rounds) {
  rounds_ = std::move(rounds);
  if (!are_on()) return;
  const Schedule& schedule = compiled.schedule();
  const auto source_end = [&](LaneIndex lane) {
    return compiled.place_of_end(schedule.src(schedule.transfers[compiled.lanes().first[lane].index()])).index();
  };
  const auto lanes = static_cast<LaneIndex>(compiled.lanes().first.size());
  std::size_t nodes = 0;
  for (std::size_t end = 0; end < end_count(schedule); ++end) {
    nodes = std::max(nodes, compiled.place_of_end(Rank(end)).index() + 1);
  }
  std::vector<std::uint32_t> sharing(nodes, 0);
  for (LaneIndex lane = 0; lane < lanes; ++lane) {
    if (compiled.shares(lane)) ++sharing[source_end(lane)];
  }
  const std::size_t slots = std::bit_ceil(std::size_t{rounds_.ahead()} + 2);
  last_slot_ = static_cast<std::uint32_t>(slots - 1);
  sources_.clear();
  std::vector<std::uint32_t> place_of(sharing.size(), no_source);
  for (std::size_t end = 0; end < sharing.size(); ++end) {
    if (sharing[end] < 2) continue;
    place_of[end] = static_cast<std::uint32_t>(sources_.size());
    sources_.emplace_back().first = place_of[end] * slots;
  }
  by_round_.assign(sources_.size() * slots, {});
  members_.assign(lanes, {});
  for (LaneIndex lane = 0; lane < lanes; ++lane) {
    if (compiled.shares(lane)) members_[lane].source = place_of[source_end(lane)];
  }
  const auto for_lanes = [&](const auto& visit) {
    for (LaneIndex lane = 0; lane < lanes; ++lane) {
      if (members_[lane].source == no_source) continue;
      visit(sources_[members_[lane].source], lane, rounds_.round({compiled.lanes().first[lane], 0}));
    }
  };
  for_lanes([](Source& source, LaneIndex, std::uint32_t round) { source.lowest = std::min(source.lowest, round); });
  for_lanes([&](Source& source, LaneIndex lane, std::uint32_t round) {
    place(source, lane, round, [](LaneIndex, const Departure&) {});
  });
}

}  // namespace espalier::sim
