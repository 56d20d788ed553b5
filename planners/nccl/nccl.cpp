#include "planners/nccl/nccl.h"

#include <array>

#include "planners/classic/classic.h"
#include "planners/graph/rank_groups.h"
#include "planners/nccl/nccl_collnet.h"
#include "planners/nccl/nccl_pxn.h"
#include "planners/nccl/nccl_sends.h"
#include "planners/nccl/nccl_trees.h"
#include "planners/ring/ring.h"
#include "planners/symmetry/canonical_network.h"

namespace espalier::planners {
namespace {

bool is_point_to_point(CollectiveKind kind) {
  return kind == CollectiveKind::gather || kind == CollectiveKind::scatter || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::send_recv;
}

/// Plans so that it makes no difference which of like parts a network lacks.
template <class Plan>
Result<Schedule> plan_canonical(const PlanningProblem& problem, const Collective& collective, Plan plan) {
  const auto canonical = CanonicalNetwork::make(problem.topology(), collective);
  if (canonical == nullptr) return plan(problem, collective);
  const auto planned = plan(canonical->problem(), canonical->collective());
  if (!planned) return planned;
  return canonical->restore(*planned);
}

/// The same for a planner that needs the topology alone.
template <class Plan>
auto of_topology(Plan plan) {
  return [plan](const PlanningProblem& problem, const Collective& collective) {
    return plan(problem.topology(), collective);
  };
}

Result<Schedule> plan_nccl_ring(const PlanningProblem& problem, const Collective& collective) {
  if (is_point_to_point(collective.kind)) return plan_ring(problem, collective);
  return plan_canonical(problem, collective, plan_ring);
}

bool is_all_reduce(const Collective& collective) { return collective.kind == CollectiveKind::all_reduce; }

Result<Schedule> plan_tree(const PlanningProblem& problem, const Collective& collective) {
  if (!is_all_reduce(collective)) return plan_nccl_tree(problem.topology(), collective);
  return plan_canonical(problem, collective, of_topology(plan_nccl_tree));
}

Result<Schedule> plan_tree_of_nvls(const PlanningProblem& problem, const Collective& collective) {
  if (!is_all_reduce(collective)) return plan_nvls_tree(problem.topology(), collective);
  return plan_canonical(problem, collective, of_topology(plan_nvls_tree));
}

Result<Schedule> plan_by_proxies(const PlanningProblem& problem, const Collective& collective) {
  if (!is_point_to_point(collective.kind)) return plan_pxn(problem, collective);
  return plan_canonical(problem, collective, plan_pxn);
}

Result<Schedule> plan_point_to_point(const PlanningProblem& problem, const Collective& collective) {
  if (!is_point_to_point(collective.kind)) return plan_sends(problem, collective);
  return plan_canonical(problem, collective, plan_sends);
}

Result<Schedule> plan_pat(const PlanningProblem& problem, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_gather && collective.kind != CollectiveKind::reduce_scatter) {
    return fail(ErrorCode::unsupported, "NCCL's PAT plans all_gather and reduce_scatter", "use nccl/ring");
  }
  const RankGroups machines = group_ranks(problem.topology());
  if (machines.groups.size() < 2 || machines.groups.size() < problem.topology().rank_count()) {
    return fail(ErrorCode::unsupported, "NCCL's PAT is for machines of one rank each", "use nccl/ring");
  }
  return plan_canonical(problem, collective, plan_bruck);
}

const std::array planners_of_nccl = {
    Planner{"nccl/ring", "NCCL's rings", without_context(plan_nccl_ring)},
    Planner{"nccl/tree", "NCCL's double binary trees, chains inside machines", without_context(plan_tree)},
    Planner{"nccl/nvls", "NCCL's NVLS: one switch copies and adds", without_context(plan_nvls)},
    Planner{"nccl/nvls_tree", "NCCL's NVLSTree: NVLS inside machines, trees between them",
            without_context(plan_tree_of_nvls)},
    Planner{"nccl/collnet_direct", "NCCL's CollNet: every GPU to heads, switches between machines add",
            without_context(plan_collnet_direct)},
    Planner{"nccl/collnet_chain", "NCCL's CollNet with chains inside machines", without_context(plan_collnet_chain)},
    Planner{"nccl/pat", "NCCL's PAT: blocks over trees that double with every step", without_context(plan_pat)},
    Planner{"nccl/pxn", "NCCL's sends by PXN: over NVLink to the GPU on the destination's rail",
            without_context(plan_by_proxies)},
    Planner{"nccl/p2p", "NCCL's sends and receives", without_context(plan_point_to_point)},
};

}  // namespace

std::span<const Planner> nccl_planners() { return planners_of_nccl; }

}  // namespace espalier::planners
