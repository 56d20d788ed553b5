#include <fmt/format.h>

#include "schedule/formats/rank_events.h"
#include "schedule/formats/writers.h"

namespace espalier {

Result<ExportedFile> write_goal(const Schedule& schedule, const Topology& topology, const ExportOptions& options) {
  constexpr std::string_view format = "GOAL";
  const auto ranks = rank_events(schedule, topology, format, options);
  if (!ranks) return tl::unexpected(ranks.error());
  std::string text = fmt::format("num_ranks {}\n", ranks->size());
  for (std::size_t rank = 0; rank < ranks->size(); ++rank) {
    text += fmt::format("\nrank {} {{\n", rank);
    const std::vector<RankEvent>& events = (*ranks)[rank];
    for (std::size_t i = 0; i < events.size(); ++i) {
      const RankEvent& event = events[i];
      text += fmt::format("l{}: {} {}b {} {} tag {}\n", i + 1, event.is_send ? "send" : "recv", event.bytes,
                          event.is_send ? "to" : "from", event.peer.index(), event.tag);
      for (const std::uint32_t other : event.after) text += fmt::format("l{} requires l{}\n", i + 1, other + 1);
      if (event.previous) text += fmt::format("l{} irequires l{}\n", i + 1, *event.previous + 1);
    }
    text += "}\n";
  }
  return ExportedFile{"", std::move(text), lost_by_events(schedule, format, true)};
}

}  // namespace espalier
