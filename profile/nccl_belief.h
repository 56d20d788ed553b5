#pragma once

#include "planners/chunking.h"
#include "profile/profile.h"

namespace espalier::profile {

/// How long NCCL's tuner believes that an algorithm takes with a protocol, launch left out, in seconds: base, hops and
/// the time of the fullest link. What it corrects by size (trees) and by machines (rings with Simple) is corrected
/// here. It leaves out how pipelines fill, which the simulation counts; the choice is NCCL's, the time is not.
/// `chunks`: of the schedule in the way's setting. Source: github.com/NVIDIA/nccl (June 2026), src/graph/tuning.cc.
double believed_seconds(const Way& way, Shape shape, sim::Protocol protocol, const planners::ChunkModel& chunks,
                        Bytes size, std::size_t machines, std::size_t ranks);

}  // namespace espalier::profile
