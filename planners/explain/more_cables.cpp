#include "planners/explain/more_cables.h"

#include <algorithm>
#include <map>

#include "planners/bound.h"
#include "planners/damage/alike.h"
#include "planners/damage/failures.h"
#include "planners/explain/cut_proof.h"

namespace espalier {
namespace {

/// The bound of the topology with these links twice.
Result<Bound> bound_with_doubled(const Topology& topology, const Collective& collective,
                                 const std::vector<LinkId>& doubled) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (const LinkId id : doubled) links.push_back(topology.link(id));
  const auto larger =
      Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  if (!larger) return tl::unexpected(larger.error());
  return compute_bound(*larger, collective);
}

/// By link: whether it crosses the bound's cut; all do where there is none.
std::vector<bool> find_crossing(const Topology& topology, const Collective& collective, const Bound& bound) {
  const auto proof = prove_cut(topology, collective, bound);
  std::vector<bool> crosses(topology.link_count(), !proof);
  if (!proof) return crosses;
  for (const LinkId link : proof->links) crosses[link.index()] = true;
  return crosses;
}

std::vector<LinkId> links_of(const Cable& cable) {
  if (cable.back.is_none()) return {cable.there};
  return {cable.there, cable.back};
}

}  // namespace

Result<std::vector<MoreCables>> value_more_cables(const Topology& topology, const Collective& collective,
                                                  const Bound& bound, std::size_t most) {
  const std::vector<Cable> cables = find_cables(topology);
  const Alike alike = find_alike(topology, cables, collective.root);
  const std::vector<bool> crosses = find_crossing(topology, collective, bound);
  std::map<std::uint32_t, std::vector<std::size_t>> members;  // by kind
  for (std::size_t i = 0; i < cables.size(); ++i) members[alike.of_cable[i]].push_back(i);
  std::vector<MoreCables> values;
  for (std::size_t i = 0; i < cables.size() && values.size() < most; ++i) {
    const std::vector<LinkId> here = links_of(cables[i]);
    if (std::ranges::none_of(here, [&](LinkId link) { return crosses[link.index()]; })) continue;
    const auto kind = members.extract(alike.of_cable[i]);
    if (kind.empty()) continue;  // one of this kind was valued already
    std::vector<LinkId> everywhere;
    for (const std::size_t member : kind.mapped()) {
      for (const LinkId link : links_of(cables[member])) everywhere.push_back(link);
    }
    MoreCables value{
        cable_name(topology, cables[i]), cable_kind_text(topology, cables[i]), kind.mapped().size(), {}, {}};
    auto one = bound_with_doubled(topology, collective, here);
    if (!one) return tl::unexpected(one.error());
    auto all = bound_with_doubled(topology, collective, everywhere);
    if (!all) return tl::unexpected(all.error());
    value.with_one = std::move(*one);
    value.with_all = std::move(*all);
    values.push_back(std::move(value));
  }
  std::ranges::stable_sort(values, [](const MoreCables& a, const MoreCables& b) {
    if (a.with_one.time_per_byte != b.with_one.time_per_byte) {
      return a.with_one.time_per_byte < b.with_one.time_per_byte;
    }
    return a.with_all.time_per_byte < b.with_all.time_per_byte;
  });
  return values;
}

}  // namespace espalier
