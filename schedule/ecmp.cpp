#include "schedule/ecmp.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "schedule/loads.h"
#include "topology/link_kind.h"

namespace espalier {
namespace {

/// The part of a route that switches choose: its links from `first` on, up to `end`.
struct Hashed {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// The links that a switch may forward to on its way to another, by switch.
using NextLinks = std::vector<std::vector<LinkId>>;

class FlowHasher {
 public:
  explicit FlowHasher(const Topology& topology) : topology_(topology) {
    for (std::size_t i = 0; i < topology.link_count(); ++i) {
      const Link& link = topology.link(LinkId(i));
      joins_switches_.push_back(is_switch(link.tail) && is_switch(link.head) &&
                                kind_of(topology, LinkId(i)) == LinkKind::network);
    }
  }

  /// The longest run of links between switches of the network; nothing where there is none.
  [[nodiscard]] std::optional<Hashed> hashed_part(const Route& route) const {
    const auto joins = [&](LinkId link) { return joins_switches_[link.index()]; };
    const auto first = std::ranges::find_if(route.links, joins);
    if (first == route.links.end()) return std::nullopt;
    const auto end = std::find_if_not(first, route.links.end(), joins);
    return Hashed{static_cast<std::size_t>(first - route.links.begin()),
                  static_cast<std::size_t>(end - route.links.begin())};
  }

  /// Whether a switch on the way has more than one link to forward to.
  bool has_choice(const Route& route) {
    const auto part = hashed_part(route);
    if (!part) return false;
    const NextLinks& next = next_links(last_of(route, *part));
    std::vector<NodeId> open{topology_.link(route.links[part->first]).tail};
    while (!open.empty()) {
      const std::vector<LinkId>& links = next[open.back().index()];
      open.pop_back();
      if (links.size() > 1) return true;
      for (const LinkId link : links) open.push_back(topology_.link(link).head);
    }
    return false;
  }

  std::vector<LinkId> draw(const Route& route, ChannelId channel, std::uint64_t seed) {
    Random flow(seed);
    for (const std::uint64_t field :
         {std::uint64_t{route.src.value()}, std::uint64_t{route.dst.value()}, std::uint64_t{channel.value()}}) {
      flow = Random(flow.next() ^ field);
    }
    const std::uint64_t key = flow.next();
    return reroute(route, [&](NodeId node, const NextLinks& next) {
      const std::vector<LinkId>& choices = next[node.index()];
      return choices[Random(key ^ node.value()).below(choices.size())];
    });
  }

  /// The way on which `price` of the links has the least sum; of equal ones the first.
  template <class Price>
  std::vector<LinkId> cheapest(const Route& route, Price price) {
    std::map<NodeId, std::pair<double, LinkId>> best;  // By switch: what the rest of the way costs, and its first link.
    const auto find = [&](auto self, NodeId node, const NextLinks& next) -> std::pair<double, LinkId> {
      if (const auto known = best.find(node); known != best.end()) return known->second;
      std::pair<double, LinkId> least{0, LinkId()};
      for (const LinkId link : next[node.index()]) {
        const double cost = price(link) + self(self, topology_.link(link).head, next).first;
        if (least.second.is_none() || cost < least.first) least = {cost, link};
      }
      return best[node] = least;
    };
    return reroute(route, [&](NodeId node, const NextLinks& next) { return find(find, node, next).second; });
  }

 private:
  /// The route with the part that switches choose walked anew: `choose` gives the next link at a switch.
  template <class Choose>
  std::vector<LinkId> reroute(const Route& route, Choose choose) {
    const auto part = hashed_part(route);
    if (!part) return {route.links.begin(), route.links.end()};
    std::vector<LinkId> links(route.links.begin(), route.links.begin() + static_cast<std::ptrdiff_t>(part->first));
    const NodeId last = last_of(route, *part);
    const NextLinks& next = next_links(last);
    for (NodeId node = topology_.link(route.links[part->first]).tail; node != last;) {
      links.push_back(choose(node, next));
      node = topology_.link(links.back()).head;
    }
    links.insert(links.end(), route.links.begin() + static_cast<std::ptrdiff_t>(part->end), route.links.end());
    return links;
  }

  [[nodiscard]] bool is_switch(NodeId node) const { return topology_.node(node).kind == NodeKind::switch_node; }

  [[nodiscard]] NodeId last_of(const Route& route, const Hashed& part) const {
    return topology_.link(route.links[part.end - 1]).head;
  }

  const NextLinks& next_links(NodeId last) {
    const auto [known, is_new] = next_.try_emplace(last);
    if (!is_new) return known->second;
    constexpr auto unseen = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> distance(topology_.node_count(), unseen);
    distance[last.index()] = 0;
    std::vector<NodeId> order{last};
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const LinkId link : topology_.in_links(order[i])) {
        const NodeId tail = topology_.link(link).tail;
        if (!joins_switches_[link.index()] || distance[tail.index()] != unseen) continue;
        distance[tail.index()] = distance[order[i].index()] + 1;
        order.push_back(tail);
      }
    }
    NextLinks& next = known->second;
    next.resize(topology_.node_count());
    for (const NodeId node : order) {
      std::vector<LinkId>& links = next[node.index()];
      Bandwidth fastest;
      for (const LinkId link : topology_.out_links(node)) {
        const NodeId head = topology_.link(link).head;
        if (!joins_switches_[link.index()] || distance[head.index()] == unseen) continue;
        if (distance[head.index()] + 1 != distance[node.index()]) continue;
        links.push_back(link);
        fastest = std::max(fastest, topology_.link(link).bandwidth());
      }
      std::erase_if(links, [&](LinkId link) { return topology_.link(link).bandwidth() < fastest; });
    }
    return next;
  }

  const Topology& topology_;
  std::vector<bool> joins_switches_;  ///< By link.
  std::map<NodeId, NextLinks> next_;  ///< By last switch.
};

bool is_between_ranks(const Schedule& schedule, const Route& route) {
  return std::max(route.src, route.dst).index() < schedule.collective.rank_count;
}

/// What a planner sends from rank to rank over one route on one channel.
struct Flow {
  RouteId route;
  ChannelId channel;
  double units = 0;
};

/// The flows of a schedule by route and channel, and which one each transfer belongs to.
struct Flows {
  std::vector<Flow> all;
  std::vector<std::uint32_t> of_transfer;
};

Flows flows_of(const Schedule& schedule) {
  Flows flows;
  std::vector<std::pair<RouteId, std::uint32_t>> keys;
  keys.reserve(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers) keys.emplace_back(transfer.route, transfer.channel().value());
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return keys[i]; });
  flows.of_transfer.resize(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Transfer& transfer = schedule.transfers[order[i]];
    if (i == 0 || keys[order[i]] != keys[order[i - 1]]) flows.all.push_back({transfer.route, transfer.channel()});
    flows.of_transfer[order[i]] = static_cast<std::uint32_t>(flows.all.size() - 1);
    for (std::uint32_t k = 0; k < transfer.slice_count; ++k) {
      flows.all.back().units += static_cast<double>(schedule.slices[transfer.first_slice.index() + k].length);
    }
  }
  return flows;
}

/// The schedule with the links that `links_of` gives for each of its flows between ranks.
template <class LinksOf>
Schedule with_routes(const Schedule& schedule, const Flows& flows, LinksOf links_of) {
  Schedule moved(schedule.header());
  moved.transfers = schedule.transfers;
  std::vector<RouteId> known(flows.all.size());
  for (std::size_t i = 0; i < moved.transfers.size(); ++i) {
    const std::uint32_t flow = flows.of_transfer[i];
    if (known[flow].is_none()) {
      const Route route = schedule.route(moved.transfers[i].route);
      known[flow] = is_between_ranks(schedule, route) ? moved.add_route(route.src, route.dst, links_of(flow, route))
                                                      : moved.add_route(route.src, route.dst, route.links);
    }
    moved.transfers[i].route = known[flow];
  }
  return moved;
}

/// The flows, the one of most units first.
std::vector<std::uint32_t> by_size(const Flows& flows) {
  std::vector<std::uint32_t> order(flows.all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::uint32_t flow) { return flows.all[flow].units; });
  return order;
}

}  // namespace

Schedule hash_flows(const Schedule& schedule, const Topology& topology, std::uint64_t seed) {
  FlowHasher hasher(topology);
  const Flows flows = flows_of(schedule);
  return with_routes(schedule, flows, [&](std::uint32_t flow, const Route& route) {
    return hasher.draw(route, flows.all[flow].channel, seed);
  });
}

Schedule spread_flows(Schedule schedule, const Topology& topology) {
  if (!has_equal_paths(schedule, topology)) return schedule;
  FlowHasher hasher(topology);
  const Flows flows = flows_of(schedule);
  std::vector<double> busy(topology.link_count(), 0);  // By link, in units over bytes per second.
  std::vector<std::vector<LinkId>> placed(flows.all.size());
  for (const std::uint32_t flow : by_size(flows)) {
    const Route route = schedule.route(flows.all[flow].route);
    const auto time_of = [&, units = flows.all[flow].units](LinkId link) {
      return units / static_cast<double>(topology.link(link).bandwidth().bytes_per_second);
    };
    std::vector<LinkId>& links = placed[flow];
    if (is_between_ranks(schedule, route)) {
      // What the flow adds to the sum of squares.
      links = hasher.cheapest(route, [&](LinkId link) {
        const double time = time_of(link);
        return (2 * busy[link.index()] + time) * time;
      });
    } else {
      links.assign(route.links.begin(), route.links.end());
    }
    for (const LinkId link : links) busy[link.index()] += time_of(link);
  }
  Schedule spread =
      with_routes(schedule, flows, [&](std::uint32_t flow, const Route& /*route*/) { return std::move(placed[flow]); });
  const bool is_better =
      compute_loads(spread, topology).time_per_byte < compute_loads(schedule, topology).time_per_byte;
  return is_better ? std::move(spread) : std::move(schedule);
}

bool has_equal_paths(const Schedule& schedule, const Topology& topology) {
  FlowHasher hasher(topology);
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    if (is_between_ranks(schedule, route) && hasher.has_choice(route)) return true;
  }
  return false;
}

}  // namespace espalier
