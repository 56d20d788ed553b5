#include "sim/core/utilisation.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/format_units.h"
#include "topology/bundles.h"

namespace espalier::sim {

namespace {

/// What one link of all strands' rates together did.
LinkUse use_of(std::span<const LinkUse> uses, const Topology& topology, const std::vector<LinkId>& strands) {
  if (strands.size() == 1) return uses[strands.front().index()];
  LinkUse all;
  __int128 work = 0;
  __int128 rate = 0;
  for (const LinkId strand : strands) {
    const LinkUse& use = uses[strand.index()];
    const std::int64_t own = topology.link(strand).bandwidth().bytes_per_second;
    all.bytes += use.bytes;
    work += static_cast<__int128>(own) * use.busy.count;
    rate += own;
  }
  all.busy = {static_cast<std::int64_t>((work + rate - 1) / rate)};
  return all;
}

}  // namespace

std::vector<LinkShare> busiest_links(std::span<const LinkUse> uses, Picoseconds elapsed, const Topology& topology,
                                     std::size_t count) {
  std::vector<LinkShare> shares;
  if (elapsed.count == 0) return shares;
  const Bundles bundles(topology);
  for (std::size_t i = 0; i < bundles.count(); ++i) {
    const std::vector<LinkId>& strands = bundles.strands(i);
    const LinkUse use = use_of(uses, topology, strands);
    if (use.busy.count == 0 && use.bytes == 0) continue;
    const double share = static_cast<double>(use.busy.count) / static_cast<double>(elapsed.count);
    shares.push_back({strands.front(), {}, strands.size(), use, std::min(share, 1.0)});
  }
  std::ranges::stable_sort(shares, [](const LinkShare& a, const LinkShare& b) { return a.use.busy > b.use.busy; });
  if (shares.size() > count) shares.resize(count);
  for (LinkShare& share : shares) share.name = bundle_name(topology, bundles, bundles.bundle_of(share.link));
  return shares;
}

std::vector<LinkShare> busiest_links(const Report& report, const Topology& topology, std::size_t count) {
  return busiest_links(report.links, report.elapsed, topology, count);
}

std::vector<CriticalShare> summarize_critical_path(const Report& report, const Topology& topology) {
  std::vector<CriticalShare> shares;
  std::map<std::string, std::size_t> index;
  for (const CriticalStep& step : report.critical_path) {
    std::string what = step.reduces   ? "reduction"
                       : step.copies  ? "copy engine"
                       : step.handles ? "processor"
                                      : "backplane";
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
