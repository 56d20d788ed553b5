#include "planners/symmetric/large_candidates.h"

#include <algorithm>
#include <utility>

#include "planners/bounds/bound.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bounds/less_hardware.h"
#include "planners/ring/ring_walks.h"
#include "planners/symmetric/repaired_plan.h"
#include "planners/symmetric/symmetric_plan.h"

namespace espalier::planners {

namespace {

Candidate candidate_of(std::string_view planner, SymmetricPlan plan, const Topology& topology) {
  const ChunkModel chunks = chunk_model(plan, topology);
  Candidate candidate{std::string(planner), plan.part, chunks, {}, nullptr};
  candidate.symmetric = std::make_shared<const SymmetricPlan>(std::move(plan));
  return candidate;
}

tl::unexpected<Error> refusal() {
  return fail(ErrorCode::unsupported,
              "past " + std::to_string(min_symmetric_ranks - 1) +
                  " ranks only ring, tree and packing have plans that need not be written down",
              "use the planner packing, or after a failure packing or tree");
}

/// Whether no two hops share anything, which walking them needs (sim/contention_free/walk_ring.h).
bool can_be_walked(const std::vector<RingWalk>& walks, const Topology& topology) {
  std::vector<bool> is_taken(topology.link_count(), false);
  for (const RingWalk& walk : walks) {
    for (const std::vector<LinkId>& hop : walk.hops) {
      for (const LinkId link : hop) {
        const Node& node = topology.node(topology.link(link).head);
        if (is_taken[link.index()] || node.bandwidth.bytes_per_second != 0) return false;
        is_taken[link.index()] = true;
      }
    }
  }
  return true;
}

bool is_of_nccl(std::string_view planner) { return planner.starts_with("nccl/"); }

/// NCCL's algorithms that have plans of such machines, or why this one has none.
Result<Candidate> nccl_candidate(const Planner& planner, const Topology& topology, const Collective& collective,
                                 const Bound& bound) {
  if (planner.name != "nccl/ring") {
    return fail(ErrorCode::unsupported,
                "past " + std::to_string(min_symmetric_ranks - 1) +
                    " ranks only NCCL's rings have plans that need not be written down",
                "use nccl/ring, or a part of the machine with --ranks");
  }
  auto walked = make_walked_ring(topology, collective, bound);
  if (!walked) {
    return fail(ErrorCode::unsupported, "NCCL's rings share links here, so that they cannot be walked",
                "use a part of the machine with --ranks");
  }
  walked->planner = walked->schedule.algorithm = planner.name;
  return *std::move(walked);
}

/// Past 65,536 ranks rings are not searched, which takes minutes there.
Result<Candidate> ring_candidate(const SymmetricPlan& packing, const Topology& topology) {
  if (topology.rank_count() <= espalier::max_ranks) {
    if (auto walked = make_walked_ring(topology, packing.collective, packing.bound)) return *std::move(walked);
  }
  return plan_symmetric_path(packing, topology).map([&](SymmetricPlan plan) {
    return candidate_of("ring", std::move(plan), topology);
  });
}

/// Plans of the machine before, each repaired.
Result<Candidates> repaired_candidates(const BundledNetwork& network, const Collective& collective,
                                       std::span<const Planner> planners, const CandidateOptions& options,
                                       const std::function<void(std::string_view)>& on_start) {
  const LostParts& lost = *options.lost;
  auto packing = plan_symmetric(lost.whole, collective, options.context);
  if (!packing) return tl::unexpected(packing.error());
  auto priced = compute_priced_bound(network, collective, options.context);
  if (!priced) return tl::unexpected(priced.error());
  keep_to_whole(priced->bound, packing->bound);
  Candidates candidates{{}, {}, std::move(priced->bound), std::move(priced->solution)};
  for (const Planner& planner : planners) {
    const bool is_packing = planner.name == "packing";
    if (is_of_nccl(planner.name)) {
      auto made = nccl_candidate(planner, network.topology(), collective, candidates.bound);
      if (made) {
        candidates.made.push_back(*std::move(made));
      } else {
        candidates.refused.push_back({std::string(planner.name), made.error()});
      }
      continue;
    }
    if (!is_packing && planner.name != "tree") {
      if (std::ranges::find(options.named, planner.name) == options.named.end()) continue;
      candidates.refused.push_back({std::string(planner.name), refusal().value()});
      continue;
    }
    if (on_start) on_start(planner.name);
    auto plan = is_packing ? packing : plan_symmetric_tree(*packing, lost.whole);
    auto repaired = plan.and_then([&](SymmetricPlan& of_whole) { return repair(of_whole, lost.whole, lost.gone); });
    if (!repaired) {
      candidates.refused.push_back({std::string(planner.name), repaired.error()});
      continue;
    }
    repaired->plan.part.bound = candidates.bound;
    const auto kept = std::make_shared<const RepairedPlan>(*std::move(repaired));
    candidates.made.push_back({std::string(planner.name),
                               kept->plan.part,
                               chunk_model(*kept, lost.whole),
                               {},
                               std::shared_ptr<const SymmetricPlan>(kept, &kept->plan),
                               kept});
  }
  return candidates;
}

}  // namespace

std::optional<Candidate> make_walked_ring(const Topology& topology, const Collective& collective, const Bound& bound) {
  auto rings = plan_ring_walks(topology, collective);
  if (!rings || !can_be_walked(rings->walks, topology)) return std::nullopt;
  Schedule outline(collective, topology.name(), "ring");
  outline.bound = bound;
  return Candidate{"ring", std::move(outline), rings->chunks, std::move(rings->walks), nullptr};
}

std::optional<Result<Candidates>> make_large_candidates(const BundledNetwork& network, const Collective& collective,
                                                        std::span<const Planner> planners,
                                                        const CandidateOptions& options,
                                                        const std::function<void(std::string_view)>& on_start) {
  const Topology& topology = network.topology();
  const bool has_parallel_links = &network.problem().topology() != &topology;
  if (has_parallel_links || !has_symmetric_plan(collective)) return std::nullopt;
  if (options.lost != nullptr && options.lost->whole.rank_count() == topology.rank_count()) {
    auto repaired = repaired_candidates(network, collective, planners, options, on_start);
    if (repaired || repaired.error().code != ErrorCode::unsupported) return repaired;
  }
  if (on_start) on_start("packing");
  auto packing = plan_symmetric(topology, collective, options.context);
  if (!packing && packing.error().code == ErrorCode::unsupported) return std::nullopt;
  if (!packing) return tl::unexpected(packing.error());
  Candidates candidates{{}, {}, packing->bound, nullptr};
  for (const Planner& planner : planners) {
    if (on_start && planner.name != "packing") on_start(planner.name);
    Result<Candidate> made = refusal();
    if (planner.name == "packing") {
      made = candidate_of("packing", *packing, topology);
    } else if (planner.name == "tree") {
      made = plan_symmetric_tree(*packing, topology).map([&](SymmetricPlan plan) {
        return candidate_of("tree", std::move(plan), topology);
      });
    } else if (planner.name == "ring") {
      made = ring_candidate(*packing, topology);
    } else if (is_of_nccl(planner.name)) {
      made = nccl_candidate(planner, topology, collective, packing->bound);
    } else if (std::ranges::find(options.named, planner.name) == options.named.end()) {
      continue;
    }
    if (made) {
      candidates.made.push_back(*std::move(made));
    } else {
      candidates.refused.push_back({std::string(planner.name), made.error()});
    }
  }
  return candidates;
}

}  // namespace espalier::planners
