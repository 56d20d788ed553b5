#include "planners/symmetric/large_candidates.h"

#include <algorithm>
#include <utility>

#include "planners/bounds/bound.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bounds/less_hardware.h"
#include "planners/ring/ring_walks.h"
#include "planners/symmetric/alike_routes.h"
#include "planners/symmetric/repaired_plan.h"
#include "planners/symmetric/symmetric_plan.h"
#include "planners/symmetry/canonical_network.h"

namespace espalier::planners {

namespace {

/// That routes of NCCL's plans are the fastest for.
constexpr Bytes routed_message{1 << 18};

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

/// Past so many ranks rings are not searched, which takes half a minute at four times as many.
constexpr std::size_t max_searched_ranks = 16384;

Result<Candidate> ring_candidate(const SymmetricPlan& packing, const Topology& topology) {
  if (topology.rank_count() <= max_searched_ranks) {
    if (auto walked = make_walked_ring(topology, packing.collective, packing.bound)) return *std::move(walked);
  }
  return plan_symmetric_path(packing, topology).map([&](SymmetricPlan plan) {
    return candidate_of("ring", std::move(plan), topology);
  });
}

/// What is done after a failure in the place of a plan of the whole machine.
Result<Candidate> repaired_candidate(std::string_view planner, SymmetricPlan plan, const LostParts& lost,
                                     const Bound& bound) {
  auto repaired = repair(std::move(plan), lost.whole, lost.gone);
  if (!repaired) return tl::unexpected(repaired.error());
  repaired->plan.part.bound = bound;
  const auto kept = std::make_shared<const RepairedPlan>(*std::move(repaired));
  return Candidate{std::string(planner),
                   kept->plan.part,
                   chunk_model(*kept, lost.whole),
                   {},
                   std::shared_ptr<const SymmetricPlan>(kept, &kept->plan),
                   kept};
}

/// NCCL's rings where they need not be written down.
Result<Candidate> nccl_rings(const SymmetricPlan& packing, const Topology& topology, const LostParts* lost,
                             const Bound& bound) {
  constexpr std::string_view name = "nccl/ring";
  auto plan = plan_symmetric_rings(packing, lost != nullptr ? lost->whole : topology);
  if (!plan) return tl::unexpected(plan.error());
  plan->part.algorithm = name;
  if (lost != nullptr) return repaired_candidate(name, *std::move(plan), *lost, bound);
  return candidate_of(name, *std::move(plan), topology);
}

/// NCCL's algorithms on such machines: others than its rings are written down, with routes as those of like pairs.
Result<Candidate> nccl_candidate(const Planner& planner, const BundledNetwork& network, const SymmetricPlan& packing,
                                 const CandidateOptions& options, const LostParts* lost, const Bound& bound) {
  const Topology& topology = network.topology();
  if (planner.name == "nccl/ring") return nccl_rings(packing, topology, lost, bound);
  CandidateOptions with_routes = options;
  if (!topology.is_altered() || topology.rank_count() > max_canonical_ranks) {
    with_routes.context.routes = lost != nullptr
                                     ? alike_routes(packing.orbits, lost->whole, topology, &lost->gone, routed_message)
                                     : alike_routes(packing.orbits, topology, topology, nullptr, routed_message);
  }
  return make_candidates_by(planner, network, packing.collective, bound, with_routes)
      .map([](std::vector<Candidate> made) { return std::move(made.back()); });
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
      if (on_start) on_start(planner.name);
      auto made = nccl_candidate(planner, network, *packing, options, &lost, candidates.bound);
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
    auto made = plan.and_then([&](const SymmetricPlan& of_whole) {
      return repaired_candidate(planner.name, of_whole, lost, candidates.bound);
    });
    if (!made) {
      candidates.refused.push_back({std::string(planner.name), made.error()});
      continue;
    }
    candidates.made.push_back(*std::move(made));
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
      made = nccl_candidate(planner, network, *packing, options, nullptr, packing->bound);
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
