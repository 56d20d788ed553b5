#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/simgrid/peer.h"
#include "schedule/schedule.h"
#include "schedule/trees/ring_walk.h"
#include "sim/conditions.h"
#include "sim/model.h"
#include "topology/topology.h"

/// The jobs that Espalier's models and SimGrid are compared on.
namespace espalier::bench {

/// One job in both forms.
struct Job {
  std::string name;
  Topology topology;
  Schedule schedule;
  Bytes size;                           ///< Of the schedule's buffer.
  std::uint64_t hops = 0;               ///< Messages times the links of their routes.
  sim::Conditions conditions;           ///< Jitter.
  std::vector<peer::Message> messages;  ///< The peer runs these, or
  peer::Rings rings;                    ///< these.
};

/// What the peer knows of a topology and of a schedule's routes.
peer::Platform make_platform(const Topology& topology, const Schedule& schedule);

/// Ring all-reduce of 64 MiB on a ring of 100 GB/s and 1 us links.
struct Ring {
  std::size_t ranks = 0;
  std::int64_t slow = 1;        ///< What the first link's rate is divided by.
  std::int32_t jitter_ppm = 0;  ///< How much longer a message takes at most.
};

Job make_ring_job(const Ring& ring);

/// The same job without a schedule.
struct WalkedRing {
  Topology topology;
  RingWalk walk;
  Bytes size;
  sim::Conditions conditions;
};

WalkedRing make_walked_ring(const Ring& ring);

/// 8 leaves of 16 hosts under 4 spines, every link 12.5 GB/s and 1 us, so that the leaves are oversubscribed 4:1.
/// All-to-all of 8 MiB per host; messages between leaves take spine (source + destination) mod 4.
Job make_all_to_all_job();

/// On the same network, 16 ring all-reduces of 8 MiB at once: ring k joins the k-th hosts of the 8 leaves over spine
/// k mod 4.
Job make_sixteen_rings_job();

}  // namespace espalier::bench
