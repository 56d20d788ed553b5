#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "planners/planner.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::test {

/// A random network's schedule by a random planner that makes the collective, or none.
inline std::shared_ptr<const Schedule> random_schedule(Random& random, CollectiveKind kind, const Topology& topology) {
  const auto root = has_root(kind) ? std::optional(Rank(random.below(topology.rank_count()))) : std::nullopt;
  std::vector<std::int64_t> shares;
  if (has_shards(kind) && random.below(2) == 0) {
    for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) shares.push_back(random.between(0, 4));
    shares[random.below(shares.size())] = 1;  // Not all nothing.
  }
  const auto collective = make_collective(kind, topology.rank_count(), root, std::move(shares));
  const auto planners = planners::all_planners();
  for (int attempt = 0; attempt < 8; ++attempt) {
    const planners::Planner& planner = planners[random.below(planners.size())];
    auto made = planners::plan_unbounded(topology, *collective, planner);
    if (made && made->relays.empty()) return std::make_shared<Schedule>(std::move(*made));
  }
  return nullptr;
}

}  // namespace espalier::test
