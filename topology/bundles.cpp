#include "topology/bundles.h"

#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace espalier {

Bundles::Bundles(const Topology& topology) {
  struct Open {
    std::uint32_t bundle = 0;
    std::int64_t rate = 0;
  };
  std::map<std::tuple<NodeId, NodeId, std::int64_t, std::int64_t>, Open> open;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const std::int64_t rate = link.bandwidth().bytes_per_second;
    Open& bundle = open[{link.tail, link.head, link.latency.count, link.overhead.count}];
    // Rates that cannot be added up stay apart.
    if (bundle.rate == 0 || bundle.rate > std::numeric_limits<std::int64_t>::max() - rate) {
      bundle = {static_cast<std::uint32_t>(strands_.size()), 0};
      strands_.emplace_back();
    }
    bundle.rate += rate;
    strands_[bundle.bundle].emplace_back(i);
    bundle_of_.push_back(bundle.bundle);
  }
}

Topology bundled(const Topology& topology, const Bundles& bundles) {
  std::vector<Link> links;
  for (std::size_t i = 0; i < bundles.count(); ++i) {
    Link link = topology.link(bundles.strands(i).front());
    if (bundles.strands(i).size() > 1) {
      link.nominal = link.reported = {0};
      link.efficiency_ppm = 1'000'000;
      for (const LinkId strand : bundles.strands(i)) {
        link.nominal.bytes_per_second += topology.link(strand).bandwidth().bytes_per_second;
      }
    }
    links.push_back(std::move(link));
  }
  auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "a topology stays one when parallel links are joined");
  return *std::move(made);
}

std::string bundle_name(const Topology& topology, const Bundles& bundles, std::size_t bundle) {
  const LinkId first = bundles.strands(bundle).front();
  const Link& link = topology.link(first);
  const bool is_all = topology.links_between(link.tail, link.head).size() == bundles.strands(bundle).size();
  return is_all ? topology.node(link.tail).id + ">" + topology.node(link.head).id : topology.link_name(first);
}

}  // namespace espalier
