#pragma once

// Tested by: tests/unit/planners/nccl/search/nccl_search_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/nccl/search/nccl_search.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Channels with the same ring or tree.
struct NcclRing {
  std::vector<std::uint32_t> channels;
  std::vector<Rank> order;  ///< Begins with rank 0.
};
struct NcclTree {
  std::vector<std::uint32_t> channels;
  std::vector<Rank> parent;  ///< By rank; none for the root.
};

/// What NCCL sets up for all ranks of a topology before the first call: what its search found in every machine, made
/// alike (NCCL takes the least of each figure), joined over machines, and how many channels are opened.
struct NcclCommunicator {
  NcclEra era;
  std::size_t ranks = 0, machines = 0;
  std::size_t min_local = 0;  ///< Ranks of the machine with the fewest.
  std::size_t max_local = 0;
  NcclGraph ring, tree, nvls;  ///< Without their orders.
  GraphPattern tree_pattern = GraphPattern::none;
  ProcessorMaker maker = ProcessorMaker::intel;  ///< Of all machines.
  bool are_makers_mixed = false;
  float min_net_rate = 0;           ///< GB/s of the slowest NIC that a rank prefers.
  std::uint32_t channels = 0;       ///< Opened for rings and trees.
  std::uint32_t nvls_channels = 0;  ///< 0: no NVLS.
  std::vector<NcclRing> rings;      ///< Distinct ones.
  std::vector<NcclTree> trees;

  /// Whether predictions go by it. Where the search gives up, NCCL takes any order at a rate that says nothing, and
  /// published times are not those of its tuner's picks at that rate; nor was the search held against what NCCL finds
  /// in domains of racks.
  [[nodiscard]] bool is_held() const {
    constexpr float min_rate_found = 0.2F;  // GB/s
    constexpr std::size_t max_held = 16;    // GPUs of a machine.
    return ring.inside >= min_rate_found && max_local <= max_held;
  }
};

/// Nothing where NCCL's rules are not known to hold: NcclBox::make, machines of more than 16 ranks, and where the
/// search finds no channel. Cost: a search for every machine that is unlike the others, some milliseconds each. Source:
/// github.com/NVIDIA/nccl (June 2026), src/init.cc, src/graph/connect.cc, trees.cc, src/transport/nvls.cc.
std::optional<NcclCommunicator> make_communicator(const Topology& topology, const NcclEra& era);

}  // namespace espalier::planners
