#include "sim/rounds/send_windows.h"

#include "schedule/relays.h"

namespace espalier::sim {

void SendWindows::begin(const CompiledSchedule& compiled, Rounds rounds) {
  rounds_ = std::move(rounds);
  if (!are_on()) return;
  const Schedule& schedule = compiled.schedule();
  const auto source_end = [&](LaneIndex lane) {
    return schedule.src(schedule.transfers[compiled.lanes().first[lane].index()]).index();
  };
  const auto lanes = static_cast<LaneIndex>(compiled.lanes().first.size());
  std::vector<std::uint32_t> sharing(end_count(schedule), 0);
  for (LaneIndex lane = 0; lane < lanes; ++lane) {
    if (compiled.shares(lane)) ++sharing[source_end(lane)];
  }
  sources_.clear();
  std::vector<std::uint32_t> place_of(sharing.size(), no_source);
  for (std::size_t end = 0; end < sharing.size(); ++end) {
    if (sharing[end] < 2) continue;
    place_of[end] = static_cast<std::uint32_t>(sources_.size());
    Source& source = sources_.emplace_back();
    source.first = place_of[end] * std::size_t{rounds_.ahead() + 1};
  }
  by_round_.assign(sources_.size() * (rounds_.ahead() + 1), {});
  is_held_.assign(lanes, 0);
  source_of_.assign(lanes, no_source);
  for (LaneIndex lane = 0; lane < lanes; ++lane) {
    if (compiled.shares(lane)) source_of_[lane] = place_of[source_end(lane)];
  }
  const auto for_lanes = [&](const auto& visit) {
    for (LaneIndex lane = 0; lane < lanes; ++lane) {
      if (source_of_[lane] == no_source) continue;
      visit(sources_[source_of_[lane]], lane, rounds_.round({compiled.lanes().first[lane], 0}));
    }
  };
  for_lanes([](Source& source, LaneIndex, std::uint32_t round) { source.lowest = std::min(source.lowest, round); });
  for_lanes([&](Source& source, LaneIndex lane, std::uint32_t round) {
    place(source, lane, round, [](LaneIndex, const Departure&) {});
  });
}

}  // namespace espalier::sim
