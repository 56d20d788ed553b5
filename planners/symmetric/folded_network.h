#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "planners/symmetric/symmetric_plan.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A network on which rank 0's part is simulated in the place of the whole: resources that the shifts take to each
/// other are one.
struct FoldedNetwork {
  Topology topology;                    ///< The same, but for the rates below.
  Parts places;                         ///< For every node and link the one that stands for all it is alike with.
  std::vector<std::uint32_t> together;  ///< By link: how many images of a chunk pass it at the same time.
};

/// Requires: is_alike(plan, topology).
FoldedNetwork fold(const SymmetricPlan& plan, const Topology& topology);

/// Whether what is simulated there is what happens on the whole network: no link or node that is used stays where it is
/// under a shift. Else several images of a chunk come to it at the same time; they are counted as going side by side,
/// each at its part of the rate, where the model would let them pass one after the other.
bool folds_exactly(const SymmetricPlan& plan, const Topology& topology);

/// The folded network of plans with the same orbits, which does not depend on their parts: one, as long as somebody
/// uses it, since on a large machine it takes as much memory as the machine. Safe to share between threads.
class SharedFold {
 public:
  /// The topology outlives what is returned. Requires: as `fold`, and a plan with these orbits.
  std::shared_ptr<const FoldedNetwork> of(const SymmetricPlan& plan, const Topology& topology);

 private:
  std::mutex mutex_;
  const Topology* topology_ = nullptr;  // of what was folded last
  std::weak_ptr<const FoldedNetwork> folded_;
};

}  // namespace espalier::planners
