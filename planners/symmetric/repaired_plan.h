#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "planners/symmetric/symmetric_plan.h"
#include "schedule/loads.h"
#include "topology/topology.h"
#include "topology/without.h"

namespace espalier::planners {

/// What a machine lost: links and nodes that are no ranks.
struct LostParts {
  Topology whole;  ///< The machine before.
  Parts gone;
};

/// A symmetric plan on a network without some links or nodes: trees that used them hang some ranks on others instead,
/// all other trees are what they were (docs/symmetric.md, "After a failure").
struct RepairedPlan {
  /// In the tree of one slice of one shard a rank hangs on another one than before. Ranks as in rank 0's tree, which
  /// the shard's shift takes to where they are.
  struct Change {
    std::uint32_t slice = 0;  ///< Of the part.
    std::uint32_t shard = 0;
    bool is_inward = false;  ///< Of the tree that the slice is summed along, not of the one that it is spread along.
    std::uint32_t rank = 0;
    std::uint32_t parent = 0;
    std::vector<LinkId> links;  ///< From the parent, or inward to it; where they are.
  };

  SymmetricPlan plan;               ///< Of the whole network.
  const Topology* whole = nullptr;  ///< That network, which must outlive this.
  std::vector<Change> changes;      ///< By shard, slice and direction.
  std::size_t changed_trees = 0;
  std::size_t tree_count = 0;  ///< Of all slices of all shards, both ways.
  Parts left;                  ///< What is left (what_is_left).
  Loads loads;                 ///< By the whole network's ids, in the units of all shards together.
  double added_latency = 0;    ///< Seconds by which the longest chain of latencies may have grown.

  /// As compute_loads(...).time_per_byte, on the whole network or one with other rates.
  [[nodiscard]] Rational time_per_byte(const Topology& topology) const;
};

/// Changes single edges: every rank whose edge is broken hangs on another rank that is not below it, on a path that the
/// plan uses somewhere, or one beside these; where all are below it, what hangs below is turned round to one that
/// another rank reaches. Of the ways that there are the one whose links are least full. Every changed tree is checked:
/// each rank hangs on the root, and no path goes over what is gone. Errors: unsupported where a rank is gone, where
/// backplanes count, or where a broken tree has no other path. Cost: per broken edge the paths of the plan; per changed
/// tree its ranks.
Result<RepairedPlan> repair(SymmetricPlan plan, const Topology& topology, const Parts& gone);

/// Fills in what follows from the links' units: the time of the fullest link, and which these are.
void find_fullest(Loads& loads, const SymmetricPlan& plan, const Topology& topology);

/// The loads of a symmetric plan as a whole, in the units of all shards together.
Loads loads_of_whole(const SymmetricPlan& plan, const Topology& topology);

/// The repaired plan as a schedule of the network that is left. Errors: as of a symmetric plan.
Result<Schedule> written_out(const RepairedPlan& repaired, const Topology& topology, const Topology& rest);

/// The choice of a chunk for the whole.
ChunkModel chunk_model(const RepairedPlan& repaired, const Topology& topology);

}  // namespace espalier::planners
