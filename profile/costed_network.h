#pragma once

// Tested by: tests/unit/profile/costed_network_test.cpp

#include <cstdint>

#include "base/result.h"
#include "profile/profile.h"
#include "schedule/collective.h"
#include "sim/core/endpoints.h"
#include "topology/topology.h"

namespace espalier::profile {

/// A network as one algorithm with one protocol finds it: links reach what software makes of them, and every way from
/// rank to rank takes its hop. Node and link ids are those of the topology, so schedules and their verification carry
/// over.
struct CostedNetwork {
  Topology topology;
  sim::Endpoints endpoints;  ///< Payload, messages; the launch, with base and ranks of the way.
  Picoseconds host;          ///< A launch that GPUs' work hides in part, and how much of that it hides (Launch::hide).
  Picoseconds overlap;
  double drain = 0;  ///< Seconds for each byte of a chunk on the wire, once per call.

  /// Before the ranks begin: the launch and, as it moves the end alike, what they take after the last chunk.
  [[nodiscard]] Picoseconds launch_with(Bytes chunk) const;
};

/// What `per_rank` makes of so many ranks.
inline Picoseconds ranks_time(const ProtocolCosts& way, std::size_t ranks) {
  return {way.per_rank.count * static_cast<std::int64_t>(ranks)};
}

/// The way as so many ranks find it in this collective: beside what it transfers each rank handles a part that it keeps
/// (copies it to where the result goes), one in ranks - 1 of its transfers, or of twice as many where it reduces and
/// hands on; that takes `own_ppm` of a transfer's time, so fewer ranks reach less of their links.
ProtocolCosts on_ranks(const ProtocolCosts& way, CollectiveKind kind, std::size_t ranks);

/// How many channels of a rank a call of this size starts: as many as give each thread of theirs something to do.
/// Source: github.com/NVIDIA/nccl (June 2026), src/enqueue.cc, src/graph/tuning.cc (threads, bytes for each of them).
std::uint32_t channels_started(Shape shape, sim::Protocol protocol, std::uint32_t channels, Bytes size,
                               std::size_t ranks);

/// What starting a call takes on machines of so many ranks together, each with so many channels: what ranks send
/// straight to each other is a send for each of them, its own block included, and no channels.
Picoseconds launch_of(const Launch& launch, Shape shape, std::size_t ranks, std::size_t machines,
                      std::uint32_t started);

/// How many channels software opens: the profile's on one machine, two where all is PCIe: one ring, twice. Between
/// machines channels go by NICs: two for each that a rank of a machine has to itself or shares, four where one carries
/// more than a channel; no more than the profile's. Source: github.com/NVIDIA/nccl (June 2026), src/graph/connect.cc,
/// search.cc.
std::uint32_t channels_of(const Profile& profile, const Topology& topology, std::size_t machines);

/// Links get the part of their nominal rate that the profile says, or their own efficiency where that is less; a rank's
/// links at most `way.most`. A way's hop is laid on its cables: half at each end that is no switch, none on the cable
/// between a NIC and its host. Inside a machine it is latency; between machines every chunk keeps its sender's lane
/// busy that long (overhead), with the protocol Simple also for the cables' own latency, as what is received is
/// flushed. Network cables have their own latency. Where channels have a limit of their own (`way.per_channel`), a rank
/// moves the part of `way.most` that `used` are of the profile's channels. Errors: those of Topology::make.
Result<CostedNetwork> make_setting(const Profile& profile, const ProtocolCosts& way, sim::Protocol protocol,
                                   Picoseconds launch, const Topology& topology, std::size_t machines,
                                   std::uint32_t used);

/// The network with its links at the rates that NCCL's tuner counts with (of those that they report), and nothing else
/// on them.
Result<Topology> counted_network(const Topology& topology, const TunerModel& tuner);

/// How many of a rank's channels carry a call of this size: each at least `way.per_channel` of each of `shards` parts;
/// rounded down to a power of two where that is not all.
std::uint32_t channels_used(const ProtocolCosts& way, std::uint32_t channels, Bytes size, std::uint64_t shards);

/// Into how large chunks NCCL would cut a call of this size: `way.chunk` per channel, halved while a channel has fewer
/// than `depth` times `way.in_flight` of them. `channels`: that are used; `shards`: into how many parts the algorithm
/// divides a channel's data; `largest_part`: the part of the message that its largest transfer carries. Zero where the
/// way has no chunk.
Bytes chunk_of(const ProtocolCosts& way, std::uint32_t channels, Bytes size, std::uint64_t shards, double largest_part,
               double depth = 1);

/// The smallest chunk that other schedules are cut into: of each of a rank's channels `way.min_chunk`, or
/// usual_least_chunk, shared out as chunk_of does. Below it, what hops cost per chunk would have to be counted.
inline constexpr Bytes usual_least_chunk{32 << 10};
Bytes min_chunk_of(const ProtocolCosts& way, std::uint32_t channels, Bytes size, double largest_part);

}  // namespace espalier::profile
