#include "planners/bounds/bound_prices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format_units.h"

namespace espalier::planners {

std::vector<BoundPrice> price_shares(const Topology& topology, const OrbitGraph& orbits,
                                     const std::vector<BigInteger>& prices) {
  BigInteger worth = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) worth += prices[i] * orbits.capacity[i];
  std::vector<BoundPrice> shares;
  if (worth == 0) return shares;
  const auto share_of = [&](std::uint32_t resource, std::int64_t rate) {
    const Rational part(prices[orbits.resources.of[resource]] * rate, worth * orbits.graph.unit);
    return to_double(part);
  };
  // An edge's own resource is its first; cables whose directions share one have both of them in its capacity.
  for (const ResourceGraph::Edge& edge : orbits.graph.edges) {
    for (const LinkId link : edge.links) {
      const double share = share_of(edge.resources.front(), topology.link(link).bandwidth().bytes_per_second);
      if (share > 0) shares.push_back({link, {}, share});
    }
  }
  for (std::size_t v = 0; v < orbits.graph.node_resources.size(); ++v) {
    const std::uint32_t resource = orbits.graph.node_resources[v];
    if (resource == ResourceGraph::no_resource) continue;
    const double share = share_of(resource, topology.node(NodeId(v)).bandwidth.bytes_per_second);
    if (share > 0) shares.push_back({{}, NodeId(v), share});
  }
  std::ranges::stable_sort(shares, [](const BoundPrice& a, const BoundPrice& b) { return a.link < b.link; });
  return shares;
}

std::vector<BindingClass> binding_classes(std::span<const BoundPrice> prices, const Topology& topology) {
  std::vector<BindingClass> classes;
  for (const BoundPrice& price : prices) {
    std::string name = "backplanes";
    if (!price.link.is_none()) {
      const Link& link = topology.link(price.link);
      name = link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class;
    }
    auto found = std::ranges::find(classes, name, &BindingClass::name);
    if (found == classes.end()) found = classes.insert(classes.end(), {std::move(name), {}, {}, 0});
    if (price.link.is_none()) {
      found->nodes.push_back(price.node);
    } else {
      found->links.push_back(price.link);
    }
    found->share += price.share;
  }
  std::ranges::stable_sort(classes, std::ranges::greater(), &BindingClass::share);
  return classes;
}

std::string binding_text(std::span<const BoundPrice> prices, const Topology& topology) {
  constexpr std::size_t max_named = 3;
  const std::vector<BindingClass> classes = binding_classes(prices, topology);
  std::vector<std::string> terms;
  double left = 1;
  for (std::size_t i = 0; i < classes.size() && i < max_named; ++i) {
    const BindingClass& each = classes[i];
    const std::size_t links = each.links.size();
    const std::string count =
        links == 0 ? fmt::format("{} of {} node{}", each.name, each.nodes.size(), each.nodes.size() == 1 ? "" : "s")
                   : fmt::format("{} ({} link{})", each.name, links, links == 1 ? "" : "s");
    terms.push_back(fmt::format("{} {:.0f} %", count, 100 * each.share));
    left -= each.share;
  }
  if (classes.size() > max_named) terms.push_back(fmt::format("others {:.0f} %", 100 * left));
  return fmt::format("{}", fmt::join(terms, ", "));
}

}  // namespace espalier::planners
