#include "planners/explain/more_cables.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "planners/bounds/bound.h"
#include "planners/damage/alike.h"
#include "planners/damage/failures.h"
#include "planners/explain/cut_proof.h"
#include "planners/symmetric/symmetric_plan.h"

namespace espalier::planners {
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

/// The cables of one kind: alike by a symmetry, or of one class between ends of the same kinds.
using Kinds = std::map<std::uint32_t, std::vector<std::size_t>>;
using ClassKey = std::tuple<std::string, NodeKind, NodeKind>;
using Classes = std::map<ClassKey, std::vector<std::size_t>>;

ClassKey class_key(const Topology& topology, const Cable& cable) {
  const Link& link = topology.link(cable.there);
  const NodeKind tail = topology.node(link.tail).kind, head = topology.node(link.head).kind;
  return {cable_kind_text(topology, cable), std::min(tail, head), std::max(tail, head)};
}

/// Which cables are taken for one kind.
Alike find_alike_cables(const Topology& topology, const std::vector<Cable>& cables, const Collective& collective) {
  if (collective.rank_count >= min_symmetric_ranks) {
    // Those of a class, as the search for symmetries would take too long.
    Alike alike;
    std::map<ClassKey, std::uint32_t> number;
    for (const Cable& cable : cables) {
      const auto [place, is_new] =
          number.try_emplace(class_key(topology, cable), static_cast<std::uint32_t>(number.size()));
      alike.of_cable.push_back(place->second);
    }
    return alike;
  }
  Alike alike = find_alike(topology, cables, collective.root);
  // Symmetries of the network need not keep shares.
  if (!collective.shares.empty()) std::iota(alike.of_cable.begin(), alike.of_cable.end(), 0U);
  return alike;
}

/// By link: whether more of it may raise a bound that these prices prove.
std::vector<bool> find_priced(const Topology& topology, std::span<const BoundPrice> prices) {
  std::vector<bool> has_price(topology.link_count(), prices.empty());
  for (const BoundPrice& price : prices) {
    if (!price.link.is_none()) has_price[price.link.index()] = true;
  }
  return has_price;
}

/// One more beside each of these; `bound` is that of the topology as it is.
Result<MoreCables> value(const Topology& topology, const Collective& collective, const Bound& bound,
                         const std::vector<bool>& may_raise, const std::vector<Cable>& cables,
                         const std::vector<std::size_t>& members) {
  std::vector<LinkId> doubled;
  for (const std::size_t member : members) {
    doubled.push_back(cables[member].there);
    if (!cables[member].back.is_none()) doubled.push_back(cables[member].back);
  }
  const bool is_needed = std::ranges::any_of(doubled, [&](LinkId link) { return may_raise[link.index()]; });
  auto raised = is_needed ? bound_with_doubled(topology, collective, doubled) : Result<Bound>(bound);
  if (!raised) return tl::unexpected(raised.error());
  const Cable& first = cables[members.front()];
  return MoreCables{cable_name(topology, first), cable_kind_text(topology, first), members.size(), std::move(*raised)};
}

}  // namespace

Result<std::vector<MoreCables>> value_more_cables(const Topology& topology, const Collective& collective,
                                                  const Bound& bound, std::span<const BoundPrice> prices,
                                                  unsigned threads, std::size_t most) {
  const std::vector<Cable> cables = find_cables(topology);
  const Alike alike = find_alike_cables(topology, cables, collective);
  const std::vector<bool> crosses = find_crossing(topology, collective, bound);
  Kinds kinds;
  Classes classes;
  for (std::size_t i = 0; i < cables.size(); ++i) {
    kinds[alike.of_cable[i]].push_back(i);
    classes[class_key(topology, cables[i])].push_back(i);
  }
  std::vector<std::vector<std::size_t>> sets;
  std::size_t valued = 0;
  for (std::size_t i = 0; i < cables.size() && valued < most; ++i) {
    const bool crosses_back = !cables[i].back.is_none() && crosses[cables[i].back.index()];
    if (!crosses[cables[i].there.index()] && !crosses_back) continue;
    const auto kind = kinds.extract(alike.of_cable[i]);
    if (kind.empty()) continue;  // one of this kind was valued already
    ++valued;
    sets.push_back({i});
    if (kind.mapped().size() > 1) sets.push_back(kind.mapped());
    const auto whole = classes.extract(class_key(topology, cables[i]));
    if (!whole.empty() && whole.mapped().size() > kind.mapped().size()) sets.push_back(whole.mapped());
  }
  const std::vector<bool> may_raise = find_priced(topology, prices);
  std::vector<std::optional<Result<MoreCables>>> valued_sets(sets.size());
  run_parallel(sets.size(), threads,
               [&](std::size_t i) { valued_sets[i] = value(topology, collective, bound, may_raise, cables, sets[i]); });
  std::vector<MoreCables> values;
  for (auto& of_set : valued_sets) {
    if (!*of_set) return tl::unexpected(of_set->error());
    values.push_back(std::move(**of_set));
  }
  std::ranges::stable_sort(values, [](const MoreCables& a, const MoreCables& b) {
    if (a.bound.time_per_byte != b.bound.time_per_byte) return a.bound.time_per_byte < b.bound.time_per_byte;
    return a.cables < b.cables;
  });
  return values;
}

}  // namespace espalier::planners
