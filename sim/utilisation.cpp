#include "sim/utilisation.h"

#include <algorithm>
#include <map>

#include "base/format_units.h"

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

std::vector<CriticalShare> summarize_critical_path(const Report& report, const Topology& topology) {
  std::vector<CriticalShare> shares;
  std::map<std::string, std::size_t> index;
  for (const CriticalStep& step : report.critical_path) {
    std::string what = step.reduces ? "reduction" : step.copies ? "copy engine" : "backplane";
    if (!step.link.is_none()) {
      const Link& link = topology.link(step.link);
      what = link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class;
    }
    const auto [place, is_new] = index.emplace(what, shares.size());
    if (is_new) shares.push_back({what, 0, {}, {}});
    CriticalShare& share = shares[place->second];
    ++share.steps;
    share.time = share.time + (step.end - step.begin);
    share.queued = share.queued + step.queued;
  }
  std::ranges::stable_sort(shares, [](const CriticalShare& a, const CriticalShare& b) { return a.time > b.time; });
  return shares;
}

}  // namespace espalier::sim
