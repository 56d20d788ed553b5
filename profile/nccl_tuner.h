#pragma once

// Tested by: tests/unit/profile/nccl_tuner_test.cpp

#include <cstdint>

#include "planners/chunking.h"
#include "profile/profile.h"
#include "schedule/collective.h"

namespace espalier::profile {

/// What NCCL's tuner knows of a communicator.
struct TunerView {
  Generation generation = Generation::ampere;
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::size_t ranks = 2;
  std::size_t machines = 1;
  std::uint32_t channels = 1;  ///< Of rings and trees.
  LinkKind inside = LinkKind::fabric;
  double fabric = 0;           ///< Bytes/s that one rank's links inside its machine carry, as the tuner counts them.
  double network = 0;          ///< Bytes/s that one machine's NICs carry each way, as it counts them; 0 on one machine.
  double network_latency = 0;  ///< Seconds that the fabric's own latency adds from machine to machine.
};

/// How long NCCL's tuner says that an algorithm takes with a protocol, launch left out, in seconds; infinite where NCCL
/// does not have it. `load`: seconds per byte of S of the schedule's fullest link at the rates that the tuner counts.
/// The tuner has constants of its own, so what it picks does not depend on what a profile says that things cost. It
/// does not count how pipelines fill, which the simulation does: the choice is NCCL's, the time is not.
/// Source: github.com/NVIDIA/nccl (June 2026), src/graph/tuning.cc, src/graph/search.cc (speeds that are tried).
double tuner_seconds(const TunerView& view, Shape shape, sim::Protocol protocol, double load, Bytes size);

/// The same for software whose tuner is not known: base, hops and the time of the fullest link as the profile has them,
/// with NCCL's corrections by size (trees) and machines (rings with Simple). `chunks`: in the way's setting.
double believed_seconds(const ProtocolCosts& way, Shape shape, sim::Protocol protocol,
                        const planners::ChunkModel& chunks, Bytes size, std::size_t machines, std::size_t ranks);

}  // namespace espalier::profile
