#include "planners/bound.h"

#include "base/check.h"
#include "planners/all_reduce_bound.h"
#include "planners/cut_bound.h"
#include "planners/flow_bound.h"

namespace espalier {

Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce_bounds(topology, context).map([](const AllReduceBounds& bounds) { return bounds.best; });
    case CollectiveKind::all_to_all: return all_to_all_bound(topology, context);
    case CollectiveKind::send_recv: return send_recv_bound(topology, context);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
    case CollectiveKind::scatter: return cut_bound(topology, collective);
  }
  ESPALIER_CHECK(false, "a collective without a bound");
}

}  // namespace espalier
