#pragma once

// Tested by: tests/property/planners/large_networks_test.cpp

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "planners/graph/resource_graph.h"

namespace espalier::planners {

/// How full trees of equal weight make the resources of a graph, and what one more of their paths costs.
///
/// A tree's path over an edge is a *pass*: it takes what the edge takes and, on a mirrored graph, what its mirror takes
/// as well. All passes count alike. A resource is *full* when it has as many as `fill` says, and costs the sharpness-th
/// power of how full it is, so that whoever pays least keeps off what is fullest, the more so the sharper the power.
class PassLoads {
 public:
  explicit PassLoads(const ResourceGraph& graph);

  /// No passes; `fill` of them fill a resource of capacity 1.
  void clear(double fill);
  /// Requires: a power of 2.
  void set_sharpness(unsigned power);
  void add(std::span<const std::uint32_t> path, int sign);

  /// What the cost of all resources grows by with one pass more over an edge.
  [[nodiscard]] double cost(std::uint32_t edge) const {
    double sum = 0;
    for (const std::uint32_t r : resources_of(edge)) sum += step_[r];
    return sum;
  }
  [[nodiscard]] double cost(std::span<const std::uint32_t> path) const;
  /// From now on nothing fits that makes a resource fuller than `fullest`, or than `slack` where it is not that full.
  void limit(double fullest, double slack);
  /// Whether one pass more over an edge is within those limits.
  [[nodiscard]] bool fits(std::uint32_t edge) const;
  /// How many resources are at least so full.
  [[nodiscard]] std::size_t count_fuller(double fullness) const;
  /// How full the fullest resource is.
  [[nodiscard]] double fullest() const;
  /// How many passes fit on an edge when so many fill a resource of capacity 1.
  [[nodiscard]] double room(std::uint32_t edge, double fill) const;

 private:
  [[nodiscard]] std::span<const std::uint32_t> resources_of(std::uint32_t edge) const {
    return std::span(resources_).subspan(first_[edge], first_[edge + 1] - first_[edge]);
  }
  [[nodiscard]] double power_of(double fullness) const;
  void set_step(std::uint32_t r) { step_[r] = power_of((passes_[r] + 1) / full_[r]) - power_of(passes_[r] / full_[r]); }

  std::vector<std::uint32_t> first_;      ///< By edge: where its resources begin.
  std::vector<std::uint32_t> resources_;  ///< Each once, all that a pass over the edge takes.
  std::vector<double> capacity_;          ///< By resource, divided by what a pass takes of it.
  std::vector<double> full_;              ///< By resource: the passes that fill it.
  std::vector<double> passes_;
  std::vector<double> most_;  ///< By resource: the passes that it may have at most.
  std::vector<double> step_;  ///< By resource: what one pass more costs.
  unsigned sharpness_ = 1;
};

}  // namespace espalier::planners
