#include "forecast/walked_ring.h"

#include <algorithm>
#include <utility>

#include "planners/ring/ring_walks.h"
#include "planners/symmetric/symmetric_plan.h"
#include "sim/contention_free/walk_ring.h"

namespace espalier::forecast {
namespace {

/// Whether rings run at a size as they are to run.
bool can_walk(const planners::WalkedRings& rings, const Topology& topology, Bytes size, const RunOptions& options) {
  const auto walk = [&](const Pacing& pacing) {
    return sim::simulate_rings(rings.walks, topology, options.at(size, pacing),
                               options.circumstances.endpoints.engines());
  };
  const auto best =
      planners::find_best_pacing(rings.chunks, size, options.pacing, [&](const Pacing& pacing, Picoseconds) {
        return walk(pacing).map([](const auto& walked) { return std::optional<RunReport>(walked.report); });
      });
  if (!best) return false;
  const auto walked = walk({best->chunk, best->ahead});
  const bool is_better = rings.is_dealt && options.circumstances.are_plain();
  return walked && (walked->is_stored_form || is_better || topology.rank_count() >= planners::max_stored_ranks);
}

}  // namespace

std::optional<planners::Candidate> find_walked_ring(const Topology& topology, const Collective& collective,
                                                    std::span<const Bytes> sizes, const RunOptions& options) {
  const std::size_t ranks = topology.rank_count();
  if (ranks < planners::min_walked_ranks || ranks >= planners::min_symmetric_ranks ||
      options.model != sim::ModelKind::link || options.profile) {
    return std::nullopt;
  }
  auto rings = planners::plan_ring_walks(topology, collective);
  if (!rings || !std::ranges::all_of(sizes, [&](Bytes size) { return can_walk(*rings, topology, size, options); })) {
    return std::nullopt;
  }
  return planners::Candidate{"ring", Schedule(collective, topology.name(), "ring"), rings->chunks,
                             std::move(rings->walks)};
}

}  // namespace espalier::forecast
