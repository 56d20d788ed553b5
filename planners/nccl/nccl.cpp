#include "planners/nccl/nccl.h"

#include <array>
#include <utility>

#include "planners/classic/classic.h"
#include "planners/graph/rank_groups.h"
#include "planners/nccl/nccl_collnet.h"
#include "planners/nccl/nccl_found.h"
#include "planners/nccl/nccl_pxn.h"
#include "planners/nccl/nccl_sends.h"
#include "planners/nccl/nccl_trees.h"
#include "planners/ring/ring.h"

namespace espalier::planners {
namespace {

Result<Schedule> plan_pat(const PlanningProblem& problem, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_gather && collective.kind != CollectiveKind::reduce_scatter) {
    return fail(ErrorCode::unsupported, "NCCL's PAT plans all_gather and reduce_scatter", "use nccl/ring");
  }
  const RankGroups machines = group_domains(problem.topology());
  if (machines.groups.size() < 2 || machines.groups.size() < problem.topology().rank_count()) {
    return fail(ErrorCode::unsupported, "NCCL's PAT is for machines of one rank each", "use nccl/ring");
  }
  return plan_bruck(problem, collective);
}

/// Over the rings that NCCL's search finds, else over the best there are.
Result<Schedule> plan_nccl_ring(const PlanningProblem& problem, const Collective& collective,
                                const PlanContext& context) {
  if (context.nccl != nullptr && goes_round_rings(collective.kind) &&
      problem.topology().first_not_relaying().is_none()) {
    const RingSet found = found_rings(problem, *context.nccl);
    if (!found.rings.empty()) return schedule_of_rings(problem.topology(), collective, found);
  }
  return plan_ring(problem, collective);
}

Planner canonical(std::string_view name, std::string_view summary, PlanFunction plan) {
  return {name, summary, std::move(plan), false, true, false, true};
}

const std::array planners_of_nccl = {
    canonical("nccl/ring", "NCCL's rings", plan_nccl_ring),
    canonical("nccl/tree", "NCCL's double binary trees, chains inside machines", plan_nccl_tree),
    canonical("nccl/nvls", "NCCL's NVLS: one switch copies and adds", without_context(plan_nvls)),
    canonical("nccl/nvls_tree", "NCCL's NVLSTree: NVLS inside machines, trees between them",
              without_context(plan_nvls_tree)),
    canonical("nccl/collnet_direct", "NCCL's CollNet: every GPU to heads, switches between machines add",
              without_context(plan_collnet_direct)),
    canonical("nccl/collnet_chain", "NCCL's CollNet with chains inside machines", without_context(plan_collnet_chain)),
    canonical("nccl/pat", "NCCL's PAT: blocks over trees that double with every step", without_context(plan_pat)),
    canonical("nccl/pxn", "NCCL's sends by PXN: over NVLink to the GPU on the destination's rail",
              without_context(plan_pxn)),
    canonical("nccl/p2p", "NCCL's sends and receives", without_context(plan_sends)),
};

}  // namespace

std::span<const Planner> nccl_planners() { return planners_of_nccl; }

}  // namespace espalier::planners
