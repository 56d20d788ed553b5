#include "sim/core/network.h"

#include <algorithm>
#include <map>
#include <string>

namespace espalier::sim {
namespace {

/// Sums of rates stop here, far past what links have.
constexpr std::int64_t max_processor_rate = std::int64_t{1} << 61U;

}  // namespace

Network::Network(const Topology& topology, const CopyEngines& engines)
    : link_count_(static_cast<std::uint32_t>(topology.link_count())),
      backplanes_(topology.node_count(), absent),
      reductions_(topology.node_count(), absent) {
  for (const Link& link : topology.links())
    resources_.push_back({link.bandwidth().bytes_per_second, link.latency.count, 0});
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.nodes()[i];
    if (node.bandwidth.bytes_per_second > 0) backplanes_[i] = add_resource(NodeId(i), node.bandwidth);
    if (node.reduce_bandwidth.bytes_per_second > 0) reductions_[i] = add_resource(NodeId(i), node.reduce_bandwidth);
  }
  if (engines.message.count > 0) add_processors(topology, engines);
  if (engines.per_rank > 0) add_engines(topology, engines);
}

void Network::add_processors(const Topology& topology, const CopyEngines& engines) {
  processors_.assign(topology.node_count(), absent);
  std::map<std::string, std::vector<std::uint32_t>> of_host;  // those of its ranks so far
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    const NodeId node = topology.node_of(Rank(rank));
    const std::string& host = topology.node(node).host;
    std::int64_t rate = 0;
    const auto add = [&](LinkId link) {
      rate = std::min(rate + topology.link(link).bandwidth().bytes_per_second, max_processor_rate);
    };
    std::ranges::for_each(topology.out_links(node), add);
    std::ranges::for_each(topology.in_links(node), add);
    if (rate == 0) continue;  // a rank that neither sends nor receives
    std::uint32_t processor = absent;
    if (engines.processors_per_host > 0 && !host.empty()) {
      std::vector<std::uint32_t>& dealt = of_host[host];
      if (dealt.size() >= engines.processors_per_host) processor = dealt[dealt.size() - engines.processors_per_host];
      if (processor == absent) processor = add_resource(node, {1});
      dealt.push_back(processor);
    } else {
      processor = add_resource(node, {1});
    }
    Resource& resource = resources_[processor];
    resource.each = engines.message.count;
    resource.bytes_per_second = std::min(resource.bytes_per_second + rate, max_processor_rate);
    processors_[node.index()] = processor;
  }
}

void Network::add_engines(const Topology& topology, const CopyEngines& engines) {
  engines_per_rank_ = engines.per_rank;
  first_engine_ = static_cast<std::uint32_t>(resources_.size());
  engines_.assign(topology.node_count(), absent);
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    const NodeId node = topology.node_of(Rank(rank));
    Bandwidth rate = engines.rate;
    if (rate.bytes_per_second == 0) {
      for (const LinkId link : topology.out_links(node)) rate = std::max(rate, topology.link(link).bandwidth());
    }
    if (rate.bytes_per_second == 0) continue;  // a rank that cannot send
    engines_[node.index()] = static_cast<std::uint32_t>(resources_.size());
    for (std::uint32_t k = 0; k < engines.per_rank; ++k) add_resource(node, rate);
  }
}

std::uint32_t Network::add_resource(NodeId node, Bandwidth rate) {
  resources_.push_back({rate.bytes_per_second, 0, 0});
  nodes_.push_back(node);
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

}  // namespace espalier::sim
