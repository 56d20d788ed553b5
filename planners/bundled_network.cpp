#include "planners/bundled_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "planners/symmetry/canonical_network.h"
#include "schedule/trees/strands.h"
#include "topology/slow.h"

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
      problem_(bundled_ ? *bundled_ : planned_on_, topology),
      reported_(has_reported(topology) ? std::optional(espalier::as_reported(topology)) : std::nullopt) {}

BundledNetwork::~BundledNetwork() = default;

const BundledNetwork& BundledNetwork::as_reported() const {
  if (!reported_) return *this;
  const std::scoped_lock lock(mutex_);
  if (as_reported_ == nullptr) {
    as_reported_ = std::make_unique<const BundledNetwork>(*reported_, paths_ ? Paths::software : Paths::any);
  }
  return *as_reported_;
}

const CanonicalNetwork* BundledNetwork::canonical(const Collective& collective, bool also_unaltered,
                                                  bool of_machine) const {
  const std::scoped_lock lock(mutex_);
  const bool counts = also_unaltered && !topology_.is_altered();
  const auto is_the_same = [&](const KnownCanonical& known) {
    const bool are_numbered = known.collective.kind == CollectiveKind::send_recv;
    return known.collective.root == collective.root && known.collective.shares == collective.shares &&
           are_numbered == (collective.kind == CollectiveKind::send_recv) && known.also_unaltered == counts &&
           known.of_machine == of_machine;
  };
  const auto known = std::ranges::find_if(canonical_, is_the_same);
  if (known != canonical_.end()) return known->network.get();
  const bool is_narrowed = of_machine && paths_;
  canonical_.push_back(
      {collective, counts, of_machine,
       CanonicalNetwork::make(of_machine ? topology_ : planned_on_, is_narrowed ? Paths::software : Paths::any,
                              collective, also_unaltered, topology_.is_altered())});
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
