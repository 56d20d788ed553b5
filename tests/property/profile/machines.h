#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "forecast/profiled_runs.h"
#include "planners/nccl/nccl.h"
#include "planners/symmetry/colored_graph.h"
#include "planners/symmetry/network_graph.h"
#include "profile/read_profile.h"
#include "topology/cables.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"

namespace espalier::profile::test {

/// A shipped machine, with so many boxes where its file has them as a parameter, under the profile of its generation.
struct Machine {
  std::string name;
  std::string profile;
  int boxes = 0;
};

inline const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {
      {"dgx1v", "nccl-volta"},      {"dgx1v-nvlink", "nccl-volta"},           {"dgx2", "nccl-volta"},
      {"dgx-a100", "nccl-ampere"},  {"dgx-a100-x2", "nccl-ampere"},           {"aws-p4d-x2", "nccl-ampere"},
      {"dgx-h100", "nccl-hopper"},  {"dgx-h100-without-nvls", "nccl-hopper"}, {"dgx-h100-x4", "nccl-hopper"},
      {"aws-p5-x2", "nccl-hopper"}, {"rtx4090-pcie", "nccl-ampere"},          {"mi300x", "rccl-mi300x"},
      {"mi250", "rccl-mi300x"},     {"dgx-a100-x16", "nccl-ampere", 4},
  };
  return all;
}

inline Topology read_machine(const Machine& machine) {
  TopologyParameters parameters;
  if (machine.boxes > 0) parameters.emplace_back("boxes", std::to_string(machine.boxes));
  TopologyReading reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + machine.name + ".yaml", parameters);
  EXPECT_TRUE(reading.topology) << machine.name;
  return *std::move(reading.topology);
}

inline forecast::ProfiledRuns::Options options_of(const Machine& machine) {
  ProfileReading reading = read_profile_file(ESPALIER_SOURCE_DIR "/configs/profiles/" + machine.profile + ".yaml");
  EXPECT_TRUE(reading.profile) << machine.profile;
  forecast::ProfiledRuns::Options options{*std::move(reading.profile), {}, {}, 4, {}, sim::ModelKind::link, {}};
  options.launch = options.profile.launches.front().second;
  return options;
}

inline Collective on(const Topology& topology, CollectiveKind kind) {
  return {kind, static_cast<std::uint32_t>(topology.rank_count()), has_root(kind) ? Rank(0) : Rank()};
}

template <class Items>
const auto& one_of(Random& random, const Items& items) {
  return items[random.below(items.size())];
}

/// What fails: nodes that are no ranks, and cables.
struct Failing {
  std::vector<NodeId> nodes;
  std::vector<std::size_t> cables;
};

inline Parts parts_of(const Failing& failing, const std::vector<Cable>& cables) {
  Parts parts{failing.nodes, {}};
  for (const std::size_t cable : failing.cables) {
    parts.links.push_back(cables[cable].there);
    if (!cables[cable].back.is_none()) parts.links.push_back(cables[cable].back);
  }
  return parts;
}

/// One to three NICs, switches of many or cables.
inline Failing any_damage(Random& random, const Topology& topology, const std::vector<Cable>& cables) {
  std::vector<NodeId> nics;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (topology.node(NodeId(i)).kind == NodeKind::nic) nics.emplace_back(i);
  }
  Failing failing;
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
    if (!nics.empty() && random.below(2) == 0) {
      failing.nodes.push_back(one_of(random, nics));
    } else {
      failing.cables.push_back(random.below(cables.size()));
    }
  }
  return failing;
}

/// A random product of the symmetries of a network, which keeps these ranks: what nodes and cables become.
inline std::vector<std::uint32_t> any_symmetry(Random& random, const Topology& topology,
                                               const std::vector<Cable>& cables,
                                               std::span<const std::int64_t> marks = {}) {
  const planners::ColoredGraph graph = planners::NetworkGraph(topology, cables, marks).graph();
  std::vector<std::vector<std::uint32_t>> generators;
  planners::visit_automorphisms(
      graph, [&](std::span<const std::uint32_t> map) { generators.emplace_back(map.begin(), map.end()); });
  std::vector<std::uint32_t> image(graph.colors.size());
  for (std::uint32_t i = 0; i < image.size(); ++i) image[i] = i;
  if (generators.empty()) return image;
  for (int step = 0; step < 24; ++step) {
    const auto& generator = one_of(random, generators);
    for (std::uint32_t& vertex : image) vertex = generator[vertex];
  }
  return image;
}

}  // namespace espalier::profile::test
