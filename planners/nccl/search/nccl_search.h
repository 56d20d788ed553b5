#pragma once

// Tested by: tests/unit/planners/nccl/search/nccl_search_test.cpp

#include <cstdint>
#include <vector>

#include "planners/nccl/search/nccl_box.h"

namespace espalier::planners {

/// What channels look like: trees whose parent and children meet at one GPU, or at the first two; rings; GPUs around a
/// switch that adds.
enum class GraphPattern : std::uint8_t { none = 0, balanced_tree = 1, tree = 3, ring = 4, nvls = 5 };
/// "balanced_tree", "tree", "ring", "nvls", "none".
std::string_view to_string(GraphPattern pattern);

/// What NCCL's search finds for one algorithm in one machine. Rates in GB/s of one channel.
struct NcclGraph {
  GraphPattern pattern = GraphPattern::none;
  int cross_nic = 0;  ///< Channels leave by other NICs than they came in by (2).
  int channels = 0;
  float inside = 0;   ///< From GPU to GPU.
  float outside = 0;  ///< From and to NICs.
  BoxWay way_inside = BoxWay::same;
  BoxWay way_outside = BoxWay::pix;
  int same_channels = 0;  ///< All channels have the same order.
  int hops = 0;
  std::vector<std::uint32_t> order;  ///< GPUs of the box, channel by channel.
  std::vector<std::uint32_t> nets;   ///< Two of each channel, where it comes in and goes out; empty without NICs.
};

/// What is found in one machine; without channels where there is nothing.
struct BoxGraphs {
  NcclGraph ring, tree, nvls;
};

/// The search that NCCL does in every machine, with its limits on steps: rings, then as many trees, then what a switch
/// that adds carries. Same box, same result. Cost: up to a million steps, most machines take some thousand.
/// Source: github.com/NVIDIA/nccl (June 2026), src/graph/search.cc.
BoxGraphs search_box(NcclBox box);

}  // namespace espalier::planners
