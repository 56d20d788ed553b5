#include "forecast/counted_view.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "topology/link_kind.h"

namespace espalier::forecast {

profile::TunerView look_at(const Topology& counted, const profile::TunerModel& tuner, std::size_t machines) {
  profile::TunerView view;
  view.generation = tuner.generation;
  view.ranks = counted.rank_count();
  view.machines = machines;
  std::vector<double> fabric(counted.node_count()), pcie(counted.node_count());
  std::map<std::string, double> network;  // by host
  for (std::size_t i = 0; i < counted.rank_count(); ++i) network[counted.node(counted.node_of(Rank(i))).host];
  for (std::size_t i = 0; i < counted.link_count(); ++i) {
    const Link& link = counted.link(LinkId(i));
    const LinkKind kind = kind_of(counted, LinkId(i));
    const auto rate = static_cast<double>(link.nominal.bytes_per_second);
    if (kind == LinkKind::network) {
      view.network_latency = std::max(view.network_latency, 2 * link.latency.seconds());
      const auto host = network.find(counted.node(link.tail).host);
      if (host != network.end() && !host->first.empty()) host->second += rate;
    } else if (!is_idle(counted, LinkId(i))) {
      (kind == LinkKind::fabric ? fabric : pcie)[link.tail.index()] += rate;
    }
  }
  const auto least = [&](const std::vector<double>& rates) {
    double found = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < counted.rank_count(); ++i) {
      found = std::min(found, rates[counted.node_of(Rank(i)).index()]);
    }
    return found;
  };
  view.network = std::ranges::min_element(network, {}, [](const auto& host) { return host.second; })->second;
  view.fabric = least(fabric);
  view.inside = view.fabric > 0 ? LinkKind::fabric : LinkKind::pcie;
  if (view.inside == LinkKind::pcie) view.fabric = least(pcie);
  return view;
}

}  // namespace espalier::forecast
