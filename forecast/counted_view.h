#pragma once

// Tested by: tests/unit/forecast/profiled_runs_test.cpp

#include <cstddef>

#include "profile/nccl_tuner.h"
#include "profile/profile.h"
#include "topology/topology.h"

namespace espalier::forecast {

/// What the tuner sees of a machine whose links have the rates that it counts: NCCL takes the least over ranks and
/// machines, whatever their numbers.
profile::TunerView look_at(const Topology& counted, const profile::TunerModel& tuner, std::size_t machines);

}  // namespace espalier::forecast
