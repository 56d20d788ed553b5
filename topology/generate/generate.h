#pragma once

// Tested by: tests/unit/topology/generate/generate_test.cpp

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "topology/topology.h"

namespace espalier {

/// What every generated cable of one kind carries, in each direction.
struct Wire {
  Bandwidth bandwidth{25'000'000'000};
  Picoseconds latency{1'000'000};
  std::string link_class = "link";
};

/// No generator makes more nodes or links than this; past it they answer too_large.
constexpr std::int64_t max_generated_nodes = 1'000'000;
constexpr std::int64_t max_generated_links = 2'000'000;

/// All generators: duplex cables unless said otherwise, the same options give the same topology on every machine.
/// Errors: invalid_input for counts and rates that make no sense, naming the option; too_large past the limits above.

/// Ranks in a circle. Two ranks share one cable. `one_way` leaves out the links from i+1 to i.
struct RingOptions {
  std::int64_t ranks = 8;
  bool one_way = false;
  Wire wire;
};
Result<Topology> generate_ring(const RingOptions& options);

/// A grid of `dims`, the last one counting fastest: gpu1.0 comes after gpu0.3 in a 2x4 grid. A torus closes each
/// dimension with one more cable (dimensions of size 2 have one cable, not two), a mesh does not.
struct GridOptions {
  std::vector<std::int64_t> dims{4, 4};
  Wire wire;
};
Result<Topology> generate_torus(const GridOptions& options);
Result<Topology> generate_mesh(const GridOptions& options);

/// 2^dimensions ranks; a cable joins those whose numbers differ in one bit.
struct HypercubeOptions {
  std::int64_t dimensions = 3;
  Wire wire;
};
Result<Topology> generate_hypercube(const HypercubeOptions& options);

/// A cable between every two ranks.
struct FullyConnectedOptions {
  std::int64_t ranks = 8;
  Wire wire;
};
Result<Topology> generate_fully_connected(const FullyConnectedOptions& options);

/// The three-level fat tree of k-port switches: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, all
/// cables alike. Each edge switch serves oversubscription x k/2 ranks, so 1 is the full tree with k^3/4 ranks. Source:
/// M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008.
struct FatTreeOptions {
  std::int64_t k = 4;
  std::int64_t oversubscription = 1;
  Wire wire;
};
Result<Topology> generate_fat_tree(const FatTreeOptions& options);

/// Every leaf has a cable to every spine. The cables' rate follows: the ranks of a leaf together can send
/// `oversubscription` times what the leaf's uplinks carry.
struct LeafSpineOptions {
  std::int64_t leaves = 4;
  std::int64_t ranks_per_leaf = 4;
  std::int64_t spines = 2;
  std::int64_t oversubscription = 1;
  Wire wire;
  Picoseconds uplink_latency{1'000'000};
};
Result<Topology> generate_leaf_spine(const LeafSpineOptions& options);

/// Groups of a = `routers` routers in full mesh, p = `ranks` ranks and h = `global_links` cables to other groups per
/// router; the largest such machine: a h + 1 groups, one cable between every two.
/// Source: J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008.
struct DragonflyOptions {
  std::int64_t routers = 4;
  std::int64_t ranks = 2;
  std::int64_t global_links = 2;
  Wire rank_wire{.link_class = "terminal"};
  Wire local_wire{.link_class = "local"};
  Wire global_wire{.link_class = "global"};
};
Result<Topology> generate_dragonfly(const DragonflyOptions& options);

/// Boxes of GPUs behind one NVSwitch; GPU i has a NIC of its own on rail i mod `rails`. A rail is one switch that all
/// boxes share. `spines` switches join the rails, each rail's uplinks carrying together what its boxes can send;
/// without spines, GPUs of different boxes and rails reach each other only through other GPUs.
struct RailBoxesOptions {
  std::int64_t boxes = 2;
  std::int64_t gpus_per_box = 8;
  std::int64_t rails = 8;
  std::int64_t spines = 0;
  Wire nvlink{.bandwidth = {450'000'000'000}, .link_class = "nvlink"};
  Wire pcie{.bandwidth = {64'000'000'000}, .latency = {500'000}, .link_class = "pcie"};
  Wire nic{.bandwidth = {50'000'000'000}, .link_class = "nic"};
};
Result<Topology> generate_rail_boxes(const RailBoxesOptions& options);

/// What the switches of a level have below them over what they have above, 2:1 for example.
struct Oversubscription {
  std::int64_t down = 1;
  std::int64_t up = 1;
};

/// Boxes of GPUs behind one NVSwitch, and below PCIe switches that share `gpus` and `nics` evenly, all under one CPU.
/// Leaf switches join the NICs of `boxes_per_leaf` boxes: one per rail, which NIC i of every box is on, or with
/// `by_box` one for all. From two levels on every leaf has a cable to each spine, from three on the spines of a pod of
/// `boxes_per_pod` boxes one to each core; all cables up from a switch carry together what those down from it do, over
/// the oversubscription. With one level nothing joins the rails but the boxes.
struct ClusterOptions {
  std::int64_t boxes = 2, gpus = 8, nics = 8;
  std::int64_t pcie_switches = 0;  ///< Of a box; 0: one per NIC.
  std::int64_t levels = 2;
  std::int64_t boxes_per_leaf = 0, boxes_per_pod = 0;  ///< 0: all.
  std::int64_t spines = 4, cores = 4;                  ///< Spines of a pod.
  Oversubscription oversubscription, core_oversubscription;
  bool by_box = false;
  Wire nvlink{.bandwidth = {450'000'000'000}, .link_class = "nvlink"};
  Wire pcie{.bandwidth = {64'000'000'000}, .latency = {500'000}, .link_class = "pcie"};
  Wire nic{.bandwidth = {50'000'000'000}, .link_class = "nic"};
};
Result<Topology> generate_cluster(const ClusterOptions& options);

/// A connected random graph. With `one_way` every link stands alone (and the graph is strongly connected), else links
/// come as duplex cables. `balanced` gives every switch the same rate in as out; otherwise the two directions of a
/// cable, or the links of a switch, differ at random.
struct RandomOptions {
  std::int64_t ranks = 8;
  std::int64_t switches = 0;
  std::int64_t extra = 8;  ///< Cables, or one-way paths from rank to rank, beyond those that connect the graph.
  std::vector<Bandwidth> rates{{10'000'000'000}, {25'000'000'000}, {50'000'000'000}};
  std::vector<Picoseconds> latencies{{500'000}, {1'000'000}, {2'000'000}};
  bool one_way = false;
  bool balanced = true;
  std::uint64_t seed = 1;
};
Result<Topology> generate_random(const RandomOptions& options);

}  // namespace espalier
