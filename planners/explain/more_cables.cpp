#include "planners/explain/more_cables.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "planners/bounds/bound.h"
#include "planners/damage/alike.h"
#include "planners/damage/failures.h"
#include "planners/explain/cut_proof.h"

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

class Valuer {
 public:
  Valuer(const Topology& topology, const Collective& collective)
      : topology_(topology), collective_(collective), cables_(find_cables(topology)) {}

  [[nodiscard]] const std::vector<Cable>& cables() const { return cables_; }

  /// One more beside each of these.
  Result<void> add(const std::vector<std::size_t>& members) {
    std::vector<LinkId> doubled;
    for (const std::size_t member : members) {
      doubled.push_back(cables_[member].there);
      if (!cables_[member].back.is_none()) doubled.push_back(cables_[member].back);
    }
    auto bound = bound_with_doubled(topology_, collective_, doubled);
    if (!bound) return tl::unexpected(bound.error());
    const Cable& first = cables_[members.front()];
    values_.push_back(
        {cable_name(topology_, first), cable_kind_text(topology_, first), members.size(), std::move(*bound)});
    return {};
  }

  std::vector<MoreCables> take() && {
    std::ranges::stable_sort(values_, [](const MoreCables& a, const MoreCables& b) {
      if (a.bound.time_per_byte != b.bound.time_per_byte) return a.bound.time_per_byte < b.bound.time_per_byte;
      return a.cables < b.cables;
    });
    return std::move(values_);
  }

 private:
  const Topology& topology_;
  const Collective& collective_;
  std::vector<Cable> cables_;
  std::vector<MoreCables> values_;
};

}  // namespace

Result<std::vector<MoreCables>> value_more_cables(const Topology& topology, const Collective& collective,
                                                  const Bound& bound, std::size_t most) {
  Valuer valuer(topology, collective);
  const std::vector<Cable>& cables = valuer.cables();
  Alike alike = find_alike(topology, cables, collective.root);
  // Symmetries of the network need not keep shares.
  if (!collective.shares.empty()) std::iota(alike.of_cable.begin(), alike.of_cable.end(), 0U);
  const std::vector<bool> crosses = find_crossing(topology, collective, bound);
  Kinds kinds;
  Classes classes;
  for (std::size_t i = 0; i < cables.size(); ++i) {
    kinds[alike.of_cable[i]].push_back(i);
    classes[class_key(topology, cables[i])].push_back(i);
  }
  std::size_t valued = 0;
  for (std::size_t i = 0; i < cables.size() && valued < most; ++i) {
    const bool crosses_back = !cables[i].back.is_none() && crosses[cables[i].back.index()];
    if (!crosses[cables[i].there.index()] && !crosses_back) continue;
    const auto kind = kinds.extract(alike.of_cable[i]);
    if (kind.empty()) continue;  // one of this kind was valued already
    ++valued;
    std::vector<std::vector<std::size_t>> sets = {{i}};
    if (kind.mapped().size() > 1) sets.push_back(kind.mapped());
    const auto whole = classes.extract(class_key(topology, cables[i]));
    if (!whole.empty() && whole.mapped().size() > kind.mapped().size()) sets.push_back(whole.mapped());
    for (const std::vector<std::size_t>& set : sets) {
      if (auto added = valuer.add(set); !added) return tl::unexpected(added.error());
    }
  }
  return std::move(valuer).take();
}

}  // namespace espalier::planners
