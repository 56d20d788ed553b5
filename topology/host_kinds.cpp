#include "topology/host_kinds.h"

#include <functional>
#include <string_view>

#include "topology/topology.h"

namespace espalier {
namespace {

/// Of parts in any order: the sum of what each is.
class Likeness {
 public:
  template <class... Values>
  void add(const Values&... values) {
    std::uint64_t part = 0;
    ((part = mixed(part + std::hash<Values>()(values))), ...);
    sum_ += part;
  }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  /// Source: S. Vigna, splitmix64 (public domain).
  static std::uint64_t mixed(std::uint64_t bits) {
    bits += 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  }

  std::uint64_t sum_ = 0;
};

}  // namespace

HostKinds find_host_kinds(const Topology& topology) {
  std::unordered_map<std::string_view, Likeness> likeness;
  for (const Node& node : topology.nodes()) {
    if (node.host.empty()) continue;
    likeness[node.host].add(static_cast<int>(node.kind), node.bandwidth.bytes_per_second,
                            node.reduce_bandwidth.bytes_per_second, node.multicast, node.reduction);
  }
  for (const Link& link : topology.links()) {
    const Node& tail = topology.node(link.tail);
    const Node& head = topology.node(link.head);
    for (const Node* const end : {&tail, &head}) {
      if (end->host.empty()) continue;
      likeness[end->host].add(static_cast<int>(tail.kind), static_cast<int>(head.kind), tail.host == head.host,
                              link.link_class, link.seen_rate().bytes_per_second, link.latency.count);
    }
  }
  HostKinds kinds;
  std::unordered_map<std::uint64_t, std::uint32_t> kind_of;
  const auto kind = [&](const std::string& host) {
    return kind_of.try_emplace(likeness[host].value(), static_cast<std::uint32_t>(kind_of.size())).first->second;
  };
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const std::string& host = topology.node(topology.node_of(Rank(i))).host;
    if (host.empty() || kinds.of_host.contains(host)) continue;
    kinds.in_order.push_back(kinds.of_host[host] = kind(host));
  }
  for (const Node& node : topology.nodes()) {
    if (!node.host.empty() && !kinds.of_host.contains(node.host)) kinds.of_host[node.host] = kind(node.host);
  }
  return kinds;
}

}  // namespace espalier
