#include "probe/pair_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/format_units.h"
#include "base/random.h"
#include "topology/routes.h"

namespace espalier::probe {
namespace {

constexpr std::size_t max_ranks_of_all_pairs = 48;
constexpr std::size_t extra_partners = 6;
constexpr std::size_t max_partners_in_host = 16;

/// What makes links of one step of a way alike.
std::string likeness(const Link& link) {
  return link.link_class.empty() ? format_bandwidth(link.nominal) : link.link_class;
}

/// Nodes by step of the ways that are like one route, and how much passes each.
class LikeWays {
 public:
  LikeWays(const Topology& topology, const Hops& hops, const FoundRoute& route)
      : topology_(topology), hops_(hops), route_(route), nodes_(route.links.size() + 1) {
    nodes_.front().insert(topology.link(route.links.front()).tail);
    for (std::size_t step = 0; step < route.links.size(); ++step) {
      for (const NodeId node : nodes_[step]) {
        for (const LinkId link : topology.out_links(node)) {
          if (fits(step, link)) nodes_[step + 1].insert(topology.link(link).head);
        }
      }
    }
    prune();
  }

  [[nodiscard]] std::vector<HopShare> spread() const {
    std::map<std::uint32_t, double> parts;
    std::map<NodeId, double> here = {{*nodes_.front().begin(), 1.0}};
    add_backplane(parts, *nodes_.front().begin(), 1);
    for (std::size_t step = 0; step < route_.links.size(); ++step) {
      std::map<NodeId, double> next;
      for (const auto& [node, part] : here) {
        const auto out = hops_from(step, node);
        double sum = 0;
        for (const std::uint32_t hop : out) sum += hops_[hop].rate;
        for (const std::uint32_t hop : out) {
          const double own = part * hops_[hop].rate / sum;
          parts[hop] += own;
          next[hops_[hop].head] += own;
        }
      }
      for (const auto& [node, part] : next) add_backplane(parts, node, part);
      here = std::move(next);
    }
    std::vector<HopShare> shares;
    for (const auto& [hop, part] : parts) shares.push_back({hop, part});
    return shares;
  }

 private:
  [[nodiscard]] bool fits(std::size_t step, LinkId id) const {
    const Link& link = topology_.link(id);
    const Link& best = topology_.link(route_.links[step]);
    if (likeness(link) != likeness(best)) return false;
    if (step + 1 == route_.links.size()) return link.head == best.head;
    const Node& node = topology_.node(link.head);
    return node.kind == topology_.node(best.head).kind && !node.is_rank;
  }

  [[nodiscard]] std::vector<std::uint32_t> hops_from(std::size_t step, NodeId node) const {
    std::vector<std::uint32_t> found;
    for (const LinkId link : topology_.out_links(node)) {
      const std::uint32_t hop = hops_.of(link);
      if (!fits(step, link) || !nodes_[step + 1].contains(topology_.link(link).head)) continue;
      if (std::ranges::find(found, hop) == found.end()) found.push_back(hop);
    }
    return found;
  }

  /// Drops nodes that lead nowhere.
  void prune() {
    for (std::size_t step = route_.links.size(); step-- > 0;) {
      std::erase_if(nodes_[step], [&](NodeId node) { return hops_from(step, node).empty(); });
    }
  }

  void add_backplane(std::map<std::uint32_t, double>& parts, NodeId node, double part) const {
    if (const std::uint32_t hop = hops_.backplane_of(node); hop != Hops::none) parts[hop] += part;
  }

  const Topology& topology_;
  const Hops& hops_;
  const FoundRoute& route_;
  std::vector<std::set<NodeId>> nodes_;
};

PairPath path_of(const Topology& topology, const Hops& hops, Rank from, Rank to, const FoundRoute& route) {
  PairPath path{from, to, LikeWays(topology, hops, route).spread(), std::numeric_limits<double>::infinity(), 0, {}};
  path.latency = static_cast<double>(route.latency.count) * 1e-12;
  for (const HopShare& share : path.shares) path.rate = std::min(path.rate, hops[share.hop].rate / share.part);
  for (const LinkId link : route.links) {
    path.kind += (path.kind.empty() ? "" : " > ") + likeness(topology.link(link));
  }
  path.kind += fmt::format(", {:.4g} GB/s", path.rate * 1e-9);
  return path;
}

/// Ranks of each host, in their order.
std::map<std::string, std::vector<std::size_t>> ranks_by_host(const Topology& topology) {
  std::map<std::string, std::vector<std::size_t>> hosts;
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    hosts[topology.node(topology.node_of(Rank(rank))).host].push_back(rank);
  }
  return hosts;
}

/// Whom each rank may be paired with.
std::vector<std::set<std::size_t>> choose_partners(const Topology& topology) {
  const std::size_t ranks = topology.rank_count();
  std::vector<std::set<std::size_t>> partners(ranks);
  if (ranks <= max_ranks_of_all_pairs) {
    for (auto& all : partners) {
      for (std::size_t other = 0; other < ranks; ++other) all.insert(other);
    }
  } else {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t step = 1; step < ranks; step *= 2)
        partners[rank].insert({(rank + step) % ranks, (rank + ranks - step) % ranks});
    }
    std::vector<std::vector<std::size_t>> hosts;
    for (auto& [name, of_host] : ranks_by_host(topology)) hosts.push_back(std::move(of_host));
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      for (std::size_t place = 0; place < hosts[host].size(); ++place) {
        auto& own = partners[hosts[host][place]];
        for (std::size_t i = 0; i < std::min(hosts[host].size(), max_partners_in_host); ++i) own.insert(hosts[host][i]);
        for (std::size_t step = 1; step < hosts.size(); step *= 2) {
          for (const std::size_t other : {(host + step) % hosts.size(), (host + hosts.size() - step) % hosts.size()}) {
            if (place < hosts[other].size()) own.insert(hosts[other][place]);
          }
        }
      }
    }
    Random random(1);
    for (auto& own : partners) {
      for (std::size_t i = 0; i < extra_partners; ++i) own.insert(random.below(ranks));
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) partners[rank].erase(rank);
  return partners;
}

}  // namespace

Hops::Hops(const Topology& topology) : of_link_(topology.link_count()), of_node_(topology.node_count(), none) {
  std::map<std::pair<NodeId, NodeId>, std::uint32_t> places;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const auto [place, is_new] = places.emplace(std::pair(link.tail, link.head), hops_.size());
    if (is_new) hops_.push_back({link.tail, link.head, 0, {}});
    hops_[place->second].rate += static_cast<double>(link.bandwidth().bytes_per_second);
    hops_[place->second].links.push_back(LinkId(i));
    of_link_[i] = place->second;
  }
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Bandwidth backplane = topology.node(NodeId(i)).bandwidth;
    if (backplane.bytes_per_second == 0) continue;
    of_node_[i] = static_cast<std::uint32_t>(hops_.size());
    hops_.push_back({NodeId(i), NodeId(i), static_cast<double>(backplane.bytes_per_second), {}});
  }
}

std::vector<PairPath> find_pair_paths(const Topology& topology, const Hops& hops) {
  std::vector<PairPath> paths;
  const auto partners = choose_partners(topology);
  for (std::size_t rank = 0; rank < partners.size(); ++rank) {
    const auto routes = routes_from(topology, Rank(rank));
    for (const std::size_t other : partners[rank]) {
      if (routes[other]) paths.push_back(path_of(topology, hops, Rank(rank), Rank(other), *routes[other]));
    }
  }
  return paths;
}

}  // namespace espalier::probe
