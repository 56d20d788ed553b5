#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Which paths of a network schedules may take.
enum class Paths : std::uint8_t {
  any,       ///< Every path in the graph: what bounds count with.
  software,  ///< Those that NCCL takes (UsedPaths).
};

/// A network without the paths that software leaves alone. A box is what links other than the network's join. Then
///
/// 1. where fabric joins all ranks of a box in a ring, each next one reached without passing others, PCIe leads between
///    ranks and NICs only: on the shortest ways from each rank to its nearest NICs and from each NIC to its nearest
///    ranks, and back;
/// 2. a NIC passes nothing from its box on to its box, and nothing from the network on to the network;
/// 3. from rank to rank of one box data stays inside; where fabric does not lead from the one to the other without
///    passing ranks, over PCIe;
/// 4. nothing passes through a GPU that is no rank, but where ranks have no other way: then on to NICs, else anywhere.
///
/// Where that would leave ranks without a path to each other, rule 4 alone counts. Node ids are those of the network;
/// nodes that must not turn data round are there twice, the second time for what comes from the network.
/// Source: github.com/NVIDIA/nccl (June 2026), src/graph/{paths,search}.cc, for what it does.
class UsedPaths {
 public:
  /// The topology must outlive this. Cost: linear in links, and in ranks times the PCIe links of a box.
  explicit UsedPaths(const Topology& topology);

  /// Nothing where every path is taken, or none could be left out.
  [[nodiscard]] const std::optional<Topology>& topology() const { return used_; }
  /// A schedule that was planned on `topology()`, on the network itself, with rule 3 kept. Requires: there is one.
  [[nodiscard]] Schedule restore(const Schedule& planned) const;

 private:
  /// Makes the network that rule 4 alone leaves, where it leaves anything out.
  void pass_no_idle();
  /// Those links alone; nothing where these are all.
  std::optional<Topology> take(const std::function<bool(LinkId)>& is_taken);
  [[nodiscard]] bool leaves_its_box(const Route& route) const;

  const Topology& whole_;
  std::optional<Topology> used_;
  std::vector<LinkId> origins_;       ///< By link of `used_`.
  std::vector<std::uint32_t> boxes_;  ///< By node of the network.
};

}  // namespace espalier::planners
