#include "planners/parallel_links.h"

#include <utility>

#include "schedule/trees/strands.h"

namespace espalier::planners {

ParallelLinks::ParallelLinks(const Topology& topology)
    : topology_(topology),
      bundles_(topology),
      bundled_(bundles_.any() ? std::optional(bundled(topology, bundles_)) : std::nullopt),
      problem_(bundled_ ? *bundled_ : topology) {}

Schedule ParallelLinks::lift(Schedule planned) const {
  return bundled_ ? deal_strands(planned, topology_, bundles_) : std::move(planned);
}

std::vector<BoundPrice> ParallelLinks::lift(std::vector<BoundPrice> prices) const {
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
