#include "sim/network.h"

#include <algorithm>
#include <limits>
#include <string>

#include "schedule/relays.h"

namespace espalier::sim {
namespace {

constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();

/// Overheads are summed up to here, past any time that a simulation accepts.
constexpr std::int64_t beyond_time = max_simulated_time + 1;

tl::unexpected<Error> foreign_route(std::size_t index, const std::string& why, const Topology& topology) {
  return fail(ErrorCode::invalid_input,
              "route " + std::to_string(index) + " of the schedule " + why + " on the topology " + topology.name(),
              "simulate a schedule on the topology that it was planned for");
}

}  // namespace

std::uint32_t Network::add_resource(NodeId node, Bandwidth rate) {
  Resource resource;
  resource.bytes_per_second = rate.bytes_per_second;
  resources.push_back(resource);
  nodes_.push_back(node);
  return static_cast<std::uint32_t>(resources.size() - 1);
}

void Network::add_nodes(const Topology& topology) {
  backplanes_.assign(topology.node_count(), absent);
  reductions_.assign(topology.node_count(), absent);
  last_visitor_.assign(topology.node_count(), 0);
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.nodes()[i];
    if (node.bandwidth.bytes_per_second > 0) backplanes_[i] = add_resource(NodeId(i), node.bandwidth);
    if (node.reduce_bandwidth.bytes_per_second > 0) reductions_[i] = add_resource(NodeId(i), node.reduce_bandwidth);
  }
}

Result<void> Network::add_path(const Schedule& schedule, const Topology& topology) {
  const std::size_t index = paths.size();
  const Route route = schedule.route(RouteId(index));
  if (route.src.index() >= end_count(schedule) || route.dst.index() >= end_count(schedule)) {
    return foreign_route(index, "joins ranks that are not", topology);
  }
  if (route.links.empty()) return foreign_route(index, "has no links", topology);
  Path path;
  path.begin = static_cast<std::uint32_t>(steps.size());
  const auto visitor = static_cast<std::uint32_t>(index + 1);
  NodeId at = node_of_end(schedule, topology, route.src);
  const auto arrive_at = [&](NodeId node) {
    at = node;
    if (backplanes_[node.index()] != absent) steps.push_back(backplanes_[node.index()]);
    const bool first_visit = last_visitor_[node.index()] != visitor;
    last_visitor_[node.index()] = visitor;
    return first_visit;
  };
  arrive_at(at);
  path.first_link = static_cast<std::uint32_t>(steps.size());
  for (const LinkId id : route.links) {
    if (id.index() >= topology.link_count() || topology.link(id).tail != at) {
      return foreign_route(index, "is not a path", topology);
    }
    path.last_link = static_cast<std::uint32_t>(steps.size());
    path.overhead = std::min(path.overhead + std::min(topology.link(id).overhead.count, beyond_time), beyond_time);
    steps.push_back(id.value());
    if (!arrive_at(topology.link(id).head)) return foreign_route(index, "passes a node twice", topology);
  }
  if (at != node_of_end(schedule, topology, route.dst)) return foreign_route(index, "misses its destination", topology);
  path.end = path.reduce_end = static_cast<std::uint32_t>(steps.size());
  if (reductions_[at.index()] != absent) {
    steps.push_back(reductions_[at.index()]);
    ++path.reduce_end;
  }
  paths.push_back(path);
  return {};
}

Result<Network> Network::make(const Schedule& schedule, const Topology& topology) {
  const auto is_node = [&](NodeId relay) { return relay.index() < topology.node_count(); };
  if (schedule.collective.rank_count != topology.rank_count() || !std::ranges::all_of(schedule.relays, is_node)) {
    return fail(ErrorCode::invalid_input, "the schedule has ranks or relays that are not on " + topology.name(),
                "simulate a schedule on the topology that it was planned for");
  }
  Network network;
  network.link_count_ = static_cast<std::uint32_t>(topology.link_count());
  for (const Link& link : topology.links()) {
    Resource resource;
    resource.bytes_per_second = link.bandwidth().bytes_per_second;
    resource.latency = link.latency.count;
    network.resources.push_back(resource);
  }
  network.add_nodes(topology);
  network.paths.reserve(schedule.route_count());
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    if (auto added = network.add_path(schedule, topology); !added) {
      return tl::unexpected(added.error());
    }
  }
  return network;
}

}  // namespace espalier::sim
