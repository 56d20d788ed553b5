#pragma once

#include <string>

#include "forecast/profiled_runs.h"
#include "planners/nccl/nccl.h"

namespace espalier::test {

/// What NCCL gave, and by which algorithm with which protocol: "nccl/ring/simple".
struct NcclRun {
  std::string by;
  RunReport run;
};

/// What NCCL's own schedules give on a network: the run that its tuner would pick.
inline Result<NcclRun> run_nccl(const Topology& topology, const Collective& collective, Bytes size,
                                const forecast::ProfiledRuns::Options& options) {
  const auto candidates =
      planners::make_candidates(topology, collective, planners::nccl_planners(), {.paths = options.profile.paths});
  if (!candidates) return tl::unexpected(candidates.error());
  auto ran = forecast::ProfiledRuns(topology, *candidates, options).run("nccl", size);
  if (!ran) return tl::unexpected(ran.error());
  return NcclRun{ran->candidate->planner + "/" + std::string(sim::to_string(ran->protocol)), ran->report};
}

}  // namespace espalier::test
