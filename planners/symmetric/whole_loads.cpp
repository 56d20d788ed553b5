#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planners/symmetric/repaired_plan.h"

namespace espalier::planners {

void find_fullest(Loads& loads, const SymmetricPlan& plan, const Topology& topology) {
  loads.time_per_byte = 0;
  loads.bottleneck_links.clear();
  const BigInteger units = BigInteger(plan.part.units) * plan.collective.rank_count;
  // Few loads are different, and exact times are dear.
  using Load = std::pair<UnitSum, std::int64_t>;
  const auto load_of = [&](std::size_t link) {
    return Load(loads.link_units[link], topology.link(LinkId(link)).bandwidth().bytes_per_second);
  };
  std::map<Load, bool> is_fullest;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (loads.link_units[i] != 0) is_fullest.try_emplace(load_of(i), false);
  }
  const auto time_of = [&](const Load& load) { return Rational(BigInteger(load.first), units * load.second); };
  for (const auto& [load, unknown] : is_fullest) loads.time_per_byte = std::max(loads.time_per_byte, time_of(load));
  for (auto& [load, fullest] : is_fullest) fullest = time_of(load) == loads.time_per_byte;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    if (loads.link_units[i] != 0 && is_fullest.at(load_of(i))) loads.bottleneck_links.emplace_back(i);
  }
}

Loads loads_of_whole(const SymmetricPlan& plan, const Topology& topology) {
  const OrbitGraph& orbits = *plan.orbits;
  const Loads part = compute_loads(plan.part, topology);
  const std::uint64_t ranks = plan.collective.rank_count;
  std::vector<UnitSum> units(orbits.resources.count(), 0);
  const auto orbit_of = [&](const ResourceGraph::Edge& edge) { return orbits.resources.of[edge.resources.front()]; };
  for (const ResourceGraph::Edge& edge : orbits.graph.edges) {
    units[orbit_of(edge)] += part.link_units[edge.links.front().index()];
  }
  Loads whole;
  whole.link_units.resize(topology.link_count());
  whole.node_units.resize(topology.node_count());
  for (const ResourceGraph::Edge& edge : orbits.graph.edges) {
    const std::uint32_t orbit = orbit_of(edge);
    whole.link_units[edge.links.front().index()] =
        units[orbit] * static_cast<UnitSum>(ranks) / orbits.resources.size[orbit];
  }
  find_fullest(whole, plan, topology);
  return whole;
}

Rational RepairedPlan::time_per_byte(const Topology& topology) const {
  if (&topology == whole) return loads.time_per_byte;
  Loads there;
  there.link_units = loads.link_units;
  find_fullest(there, plan, topology);
  return there.time_per_byte;
}

ChunkModel chunk_model(const RepairedPlan& repaired, const Topology& topology) {
  return ChunkModel(repaired.plan.part, topology)
      .of_whole(to_double(repaired.time_per_byte(topology)), repaired.plan.collective.rank_count,
                repaired.added_latency);
}

}  // namespace espalier::planners
