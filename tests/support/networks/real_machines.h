#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/networks/fabrics.h"

/// Small models of machines whose figures the tests know by heart.
namespace espalier::test {

/// The NVLinks of a DGX-1 with V100s at 22 GB/s each: every GPU has six, some pairs are joined by two. Without the
/// gpu0-gpu1 link when `damaged`. Source: S. Li et al., "Evaluating modern GPU interconnect", IEEE TPDS 31(1), 2020.
inline Topology dgx1v_nvlinks(bool damaged) {
  constexpr Bandwidth nvlink{22'000'000'000};
  constexpr std::array<std::pair<int, int>, 8> single = {
      {{0, 1}, {0, 2}, {1, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 6}, {5, 7}}};
  constexpr std::array<std::pair<int, int>, 8> twice = {
      {{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}}};
  FabricMaker maker;
  std::vector<NodeId> gpus;
  for (int i = 0; i < 8; ++i) gpus.push_back(maker.add_rank("gpu" + std::to_string(i)));
  const auto join = [&](const std::pair<int, int>& ends) {
    maker.add_cable(gpus[static_cast<std::size_t>(ends.first)], gpus[static_cast<std::size_t>(ends.second)], nvlink);
  };
  for (const auto& ends : single) {
    if (!damaged || ends != std::pair{0, 1}) join(ends);
  }
  for (const auto& ends : twice) {
    join(ends);
    join(ends);
  }
  return maker.build(damaged ? "dgx1v-gpu0-gpu1-down" : "dgx1v");
}

}  // namespace espalier::test
