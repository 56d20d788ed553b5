#include "planners/bundled_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "planners/symmetry/canonical_network.h"
#include "schedule/trees/strands.h"

namespace espalier::planners {

namespace {

std::optional<UsedPaths> paths_of(const Topology& topology, Paths paths) {
  std::optional<UsedPaths> used;
  if (paths == Paths::software) used.emplace(topology);
  if (used && !used->topology()) used.reset();
  return used;
}

}  // namespace

BundledNetwork::BundledNetwork(const Topology& topology, Paths paths)
    : topology_(topology),
      paths_(paths_of(topology, paths)),
      planned_on_(paths_ ? *paths_->topology() : topology),
      bundles_(planned_on_),
      bundled_(bundles_.any() ? std::optional(bundled(planned_on_, bundles_)) : std::nullopt),
      problem_(bundled_ ? *bundled_ : planned_on_) {}

BundledNetwork::~BundledNetwork() = default;

const CanonicalNetwork* BundledNetwork::canonical(const Collective& collective, bool also_unaltered) const {
  const std::scoped_lock lock(mutex_);
  const bool counts = also_unaltered && !topology_.is_altered();
  const auto is_the_same = [&](const KnownCanonical& known) {
    const bool are_numbered = known.collective.kind == CollectiveKind::send_recv;
    return known.collective.root == collective.root && known.collective.shares == collective.shares &&
           are_numbered == (collective.kind == CollectiveKind::send_recv) && known.also_unaltered == counts;
  };
  const auto known = std::ranges::find_if(canonical_, is_the_same);
  if (known != canonical_.end()) return known->network.get();
  canonical_.push_back(
      {collective, counts,
       CanonicalNetwork::make(planned_on_, Paths::any, collective, also_unaltered, topology_.is_altered())});
  return canonical_.back().network.get();
}

Schedule BundledNetwork::lift(Schedule planned) const {
  if (bundled_) planned = deal_strands(planned, planned_on_, bundles_);
  return restore_paths(std::move(planned));
}

Schedule BundledNetwork::restore_paths(Schedule planned) const { return paths_ ? paths_->restore(planned) : planned; }

std::vector<BoundPrice> BundledNetwork::lift(std::vector<BoundPrice> prices) const {
  ESPALIER_CHECK(!paths_, "bounds count every path");
  if (!bundled_) return prices;
  std::vector<BoundPrice> all;
  const auto rate_of = [](const Topology& network, LinkId link) {
    return static_cast<double>(network.link(link).bandwidth().bytes_per_second);
  };
  for (const BoundPrice& price : prices) {
    if (price.link.is_none()) {
      all.push_back(price);
      continue;
    }
    for (const LinkId strand : bundles_.strands(price.link.index())) {
      all.push_back({strand, {}, price.share * rate_of(topology_, strand) / rate_of(*bundled_, price.link)});
    }
  }
  return all;
}

}  // namespace espalier::planners
