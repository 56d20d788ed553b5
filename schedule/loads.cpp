#include "schedule/loads.h"

#include <boost/multiprecision/cpp_int.hpp>

#include "schedule/relays.h"

namespace espalier {
namespace {

using Wide = boost::multiprecision::int256_t;  // 2^93 units times a 63-bit rate.

/// A time as a fraction of units and rate, compared without rounding.
struct UnitTime {
  UnitSum units = 0;
  std::int64_t rate = 1;
};

int compare(const UnitTime& a, const UnitTime& b) { return (Wide(a.units) * b.rate).compare(Wide(b.units) * a.rate); }

/// Keeps the largest time and the ids that reach it.
template <class IdType>
void note(UnitTime time, IdType id, UnitTime& largest, std::vector<IdType>& reach, auto& others) {
  if (time.units == 0) return;
  const int order = compare(time, largest);
  if (order < 0) return;
  if (order > 0) {
    largest = time;
    reach.clear();
    others.clear();
  }
  reach.push_back(id);
}

/// Seconds per byte of S: the buffer of `units` stands for extent() times S bytes.
Rational seconds_per_byte(const Schedule& schedule, UnitTime time) {
  if (time.units == 0) return make_rational(0);
  return Rational(BigInteger(time.units), BigInteger(schedule.units) * time.rate) * schedule.collective.extent();
}

std::vector<UnitSum> units_by_route(const Schedule& schedule) {
  std::vector<UnitSum> units(schedule.route_count());
  for (const Transfer& transfer : schedule.transfers) {
    const std::size_t end = transfer.first_slice.index() + transfer.slice_count;
    const std::int64_t end_offset = end < schedule.slices.size() ? schedule.slices[end].offset : schedule.units;
    units[transfer.route.index()] += end_offset - schedule.slices[transfer.first_slice.index()].offset;
  }
  return units;
}

}  // namespace

Loads compute_loads(const Schedule& schedule, const Topology& topology) {
  Loads loads;
  loads.link_units.resize(topology.link_count());
  loads.node_units.resize(topology.node_count());
  const auto add_to_node = [&](NodeId node, UnitSum units) {
    if (topology.node(node).bandwidth.bytes_per_second > 0) loads.node_units[node.index()] += units;
  };
  const std::vector<UnitSum> route_units = units_by_route(schedule);
  for (std::size_t i = 0; i < route_units.size(); ++i) {
    const Route route = schedule.route(RouteId(i));
    add_to_node(node_of_end(schedule, topology, route.src), route_units[i]);
    for (const LinkId link : route.links) {
      loads.link_units[link.index()] += route_units[i];
      add_to_node(topology.link(link).head, route_units[i]);
    }
  }

  UnitTime largest;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    note(UnitTime{loads.link_units[i], topology.link(LinkId(i)).bandwidth().bytes_per_second}, LinkId(i), largest,
         loads.bottleneck_links, loads.bottleneck_nodes);
  }
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    note(UnitTime{loads.node_units[i], topology.node(NodeId(i)).bandwidth.bytes_per_second}, NodeId(i), largest,
         loads.bottleneck_nodes, loads.bottleneck_links);
  }
  loads.time_per_byte = seconds_per_byte(schedule, largest);
  return loads;
}

Rational link_share(const Schedule& schedule, const Topology& topology, const Loads& loads, LinkId link) {
  if (loads.time_per_byte == 0) return make_rational(0);
  const UnitTime time{loads.link_units[link.index()], topology.link(link).bandwidth().bytes_per_second};
  return seconds_per_byte(schedule, time) / loads.time_per_byte;
}

}  // namespace espalier
