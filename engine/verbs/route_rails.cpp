#include "engine/verbs/route_rails.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace espalier::engine {
namespace {

class RouteRails {
 public:
  explicit RouteRails(const Topology& topology) : topology_(topology.name()), links_(topology.link_count()) {
    std::map<std::string, std::uint32_t> nics;  // By host.
    std::vector<std::optional<std::uint32_t>> rail_of_nic(topology.node_count());
    for (std::size_t i = 0; i < topology.node_count(); ++i) {
      const Node& node = topology.nodes()[i];
      if (node.kind == NodeKind::nic) rail_of_nic[i] = nics[node.host]++;
    }
    for (std::size_t i = 0; i < topology.node_count(); ++i) {
      const NodeId node(static_cast<std::uint32_t>(i));
      std::uint32_t place = 0;
      for (const LinkId link : topology.out_links(node)) links_[link.index()].place_at_tail = place++;
      place = 0;
      for (const LinkId link : topology.in_links(node)) {
        links_[link.index()].place_at_head = place++;
        links_[link.index()].into_nic = rail_of_nic[i];
      }
    }
  }

  [[nodiscard]] std::optional<RailPair> choose(const Schedule& schedule, RouteId id) const {
    const auto links = schedule.route(id).links;
    const auto is_known = [&](LinkId link) { return link.index() < links_.size(); };
    if (schedule.topology != topology_ || links.empty() || !std::ranges::all_of(links, is_known)) return std::nullopt;
    std::optional<RailPair> rails;
    for (const LinkId link : links) {
      const std::optional<std::uint32_t> nic = links_[link.index()].into_nic;
      if (nic) rails = {rails ? rails->source : *nic, *nic};
    }
    if (rails) return rails;
    return RailPair{links_[links.front().index()].place_at_tail, links_[links.back().index()].place_at_head};
  }

 private:
  struct End {
    std::optional<std::uint32_t> into_nic;  ///< The rail of the NIC that it leads to.
    std::uint32_t place_at_tail = 0;
    std::uint32_t place_at_head = 0;
  };
  std::string topology_;
  std::vector<End> links_;  ///< By link.
};

}  // namespace

RailChoice rails_by_routes(const Topology& topology) {
  return [rails = std::make_shared<const RouteRails>(topology)](const Schedule& schedule, RouteId route) {
    return rails->choose(schedule, route);
  };
}

std::vector<std::vector<std::string>> nics_by_rank(const Topology& topology) {
  std::map<std::string, std::vector<std::string>, std::less<>> by_host;
  for (const Node& node : topology.nodes()) {
    if (node.kind == NodeKind::nic) by_host[node.host].push_back(node.id);
  }
  std::vector<std::vector<std::string>> nics;
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    const auto found = by_host.find(topology.nodes()[topology.node_of(Rank(rank)).index()].host);
    nics.push_back(found == by_host.end() ? std::vector<std::string>() : found->second);
  }
  return nics;
}

}  // namespace espalier::engine
