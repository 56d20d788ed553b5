#include "sim/utilisation.h"

#include <algorithm>

namespace espalier::sim {

std::vector<LinkShare> busiest_links(const Report& report, std::size_t count) {
  std::vector<LinkShare> shares;
  for (std::size_t i = 0; i < report.links.size(); ++i) {
    const LinkUse& use = report.links[i];
    if (use.busy.count == 0) continue;
    shares.push_back({LinkId(i), use, static_cast<double>(use.busy.count) / static_cast<double>(report.elapsed.count)});
  }
  std::ranges::stable_sort(shares, [](const LinkShare& a, const LinkShare& b) { return a.use.busy > b.use.busy; });
  if (shares.size() > count) shares.resize(count);
  return shares;
}

}  // namespace espalier::sim
