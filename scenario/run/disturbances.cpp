#include "scenario/run/disturbances.h"

#include <algorithm>
#include <tuple>

namespace espalier::scenario {

std::vector<Notice> find_notices(const sim::Conditions& conditions, Picoseconds detection) {
  std::vector<sim::RateChange> changes = conditions.changes;
  std::ranges::stable_sort(changes, {},
                           [](const sim::RateChange& change) { return std::pair(change.link, change.at); });
  std::vector<Notice> notices;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool was_dead = i > 0 && changes[i - 1].link == changes[i].link && changes[i - 1].rate_ppm == 0;
    if (changes[i].rate_ppm != 0 || was_dead) continue;
    const std::int64_t noticed = changes[i].at.count + detection.count;
    std::size_t up = i + 1;
    while (up < changes.size() && changes[up].link == changes[i].link && changes[up].rate_ppm == 0) ++up;
    const bool is_up = up < changes.size() && changes[up].link == changes[i].link;
    if (is_up && changes[up].at.count <= noticed) continue;
    notices.push_back({noticed, changes[i].link, true});
    if (is_up) notices.push_back({changes[up].at.count + detection.count, changes[i].link, false});
  }
  std::ranges::sort(notices, {},
                    [](const Notice& notice) { return std::tuple(notice.time, notice.link, notice.is_dead); });
  return notices;
}

}  // namespace espalier::scenario
