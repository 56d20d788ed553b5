#include "scenario/workload/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "topology/reachable.h"

namespace espalier::scenario {
namespace {

class Finder {
 public:
  Finder(const Topology& network, std::span<const Rank> ranks, const std::vector<bool>& dead)
      : network_(network), dead_(dead), is_member_(network.node_count(), false) {
    for (const Rank rank : ranks) {
      members_.push_back(network.node_of(rank));
      is_member_[members_.back().index()] = true;
    }
  }

  Result<Footprint> find() {
    const std::vector<bool> all(network_.node_count(), true);
    if (members_.size() == network_.rank_count()) return require(make(all));
    const std::string& host = network_.node(members_.front()).host;
    const bool shares_host = !host.empty() && std::ranges::all_of(members_, [&](NodeId member) {
      return network_.node(member).host == host;
    });
    if (shares_host) {
      std::vector<bool> kept(network_.node_count());
      for (std::size_t i = 0; i < kept.size(); ++i)
        kept[i] = may_use(NodeId(i)) && network_.node(NodeId(i)).host == host;
      if (auto inside = make(kept); is_joined(inside)) return inside;
    }
    if (auto near = make(on_short_ways()); is_joined(near)) return near;
    return require(make(all));
  }

 private:
  [[nodiscard]] bool is_dead(LinkId link) const { return !dead_.empty() && dead_[link.index()]; }
  [[nodiscard]] bool may_use(NodeId node) const { return is_member_[node.index()] || !network_.node(node).is_rank; }
  static bool is_joined(const Footprint& footprint) { return !find_unreachable(footprint.topology).has_value(); }

  static Result<Footprint> require(Footprint footprint) {
    const auto broken = find_unreachable(footprint.topology);
    if (!broken) return footprint;
    return fail(ErrorCode::infeasible,
                fmt::format("no way is left from {} to {}", footprint.topology.rank_name(broken->from),
                            footprint.topology.rank_name(broken->to)));
  }

  /// The nodes on ways of fewest links from one member to another, over nodes that only forward.
  [[nodiscard]] std::vector<bool> on_short_ways() const {
    constexpr std::uint32_t unseen = 0xFFFFFFFFU;
    std::vector<bool> kept(network_.node_count(), false);
    std::vector<std::uint32_t> distance(network_.node_count());
    std::vector<bool> on_way(network_.node_count());
    for (const NodeId start : members_) {
      std::ranges::fill(distance, unseen);
      distance[start.index()] = 0;
      std::vector<NodeId> order{start};
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (i > 0 && is_member_[order[i].index()]) continue;  // ways end at ranks
        for (const LinkId link : network_.out_links(order[i])) {
          const NodeId head = network_.link(link).head;
          if (is_dead(link) || !may_use(head) || distance[head.index()] != unseen) continue;
          distance[head.index()] = distance[order[i].index()] + 1;
          order.push_back(head);
        }
      }
      on_way = is_member_;
      for (std::size_t i = order.size(); i-- > 1;) {
        if (!on_way[order[i].index()]) continue;
        for (const LinkId link : network_.in_links(order[i])) {
          const NodeId tail = network_.link(link).tail;
          if (!is_dead(link) && distance[tail.index()] + 1 == distance[order[i].index()]) on_way[tail.index()] = true;
        }
      }
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] || on_way[i];
    }
    return kept;
  }

  [[nodiscard]] Footprint make(const std::vector<bool>& kept) const {
    std::vector<Node> nodes;
    std::vector<Link> links;
    std::vector<NodeId> kept_nodes;
    std::vector<LinkId> kept_links;
    std::vector<NodeId> new_id(network_.node_count());
    for (std::size_t i = 0; i < network_.node_count(); ++i) {
      if (!kept[i]) continue;
      new_id[i] = NodeId(nodes.size());
      nodes.push_back(network_.node(NodeId(i)));
      nodes.back().is_rank = is_member_[i];
      kept_nodes.emplace_back(i);
    }
    for (std::size_t i = 0; i < network_.link_count(); ++i) {
      const Link& link = network_.link(LinkId(i));
      if (!kept[link.tail.index()] || !kept[link.head.index()] || is_dead(LinkId(i))) continue;
      links.push_back(link);
      links.back().tail = new_id[link.tail.index()];
      links.back().head = new_id[link.head.index()];
      kept_links.emplace_back(i);
    }
    auto topology = Topology::make(network_.name(), std::move(nodes), std::move(links));
    ESPALIER_CHECK(topology.has_value(), "a part of a topology that has a rank is one");
    const bool is_damaged = network_.is_altered() || std::ranges::find(dead_, true) != dead_.end();
    return {is_damaged ? std::move(*topology).as_altered(network_) : *std::move(topology),
            {std::move(kept_nodes), std::move(kept_links)}};
  }

  const Topology& network_;
  const std::vector<bool>& dead_;
  std::vector<NodeId> members_;
  std::vector<bool> is_member_;
};

}  // namespace

Result<Footprint> find_footprint(const Topology& network, std::span<const Rank> ranks, const std::vector<bool>& dead) {
  ESPALIER_CHECK(!ranks.empty(), "a group has ranks");
  return Finder(network, ranks, dead).find();
}

std::string shape_of(const Topology& topology) {
  std::string text;
  auto out = std::back_inserter(text);
  std::unordered_map<std::string, std::size_t> hosts;
  for (const Node& node : topology.nodes()) {
    const std::size_t host = node.host.empty() ? 0 : hosts.emplace(node.host, hosts.size() + 1).first->second;
    fmt::format_to(out, "{},{:d},{:d},{},{},{:d},{:d},{},{};", static_cast<int>(node.kind), node.is_rank,
                   node.must_not_relay(), node.bandwidth.bytes_per_second, node.reduce_bandwidth.bytes_per_second,
                   node.multicast, node.reduction, host, node.rail ? *node.rail : -1);
  }
  for (const Link& link : topology.links()) {
    // All that there are.
    const auto& [nominal, latency, overhead, efficiency_ppm, link_class, reported] = link.values();
    fmt::format_to(out, "{},{},{},{},{},{},{},{};", link.tail.value(), link.head.value(), nominal.bytes_per_second,
                   latency.count, overhead.count, efficiency_ppm, link_class, reported.bytes_per_second);
  }
  return text;
}

}  // namespace espalier::scenario
