#pragma once

// Tested by: tests/unit/forecast/sources/advisor_test.cpp

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/units.h"
#include "schedule/schedule.h"
#include "schedule/trees/ring_walk.h"
#include "topology/topology.h"

namespace espalier::planners {

/// What the choice of a chunk size needs to know of a schedule, worked out once for all message sizes.
///
/// Chunks of dependent transfers pipeline: with chunks of c bytes the last byte arrives about c x fill later than the
/// fullest link finishes, where fill is the longest chain of transfers, each counted with the seconds per byte of its
/// slowest link. Smaller chunks shorten the fill; per-message overhead and the number of simulated events pull the
/// other way.
class ChunkModel {
 public:
  /// Requires: a schedule that passes `verify` on this topology. Cost: O(slice moves) time; memory of
  /// O(ranks x slices), and of O(slice moves) where that would be more than a quarter GiB.
  ChunkModel(const Schedule& schedule, const Topology& topology);

  /// Of the schedule that these rings stand for, without storing it: chooses as the model of the stored one does.
  /// Requires: checked walks of one collective. Cost: O(ranks), and O(ranks^2) where hops differ.
  static ChunkModel of_rings(std::span<const RingWalk> walks, const Topology& topology);

  /// Of a schedule that has so many like parts, of which this is one: the fullest link takes so many seconds per byte
  /// of what all parts together carry, and the longest chain of latencies takes so many seconds more.
  [[nodiscard]] ChunkModel of_whole(double seconds_per_byte, std::uint32_t parts, double more_latency = 0) const {
    ChunkModel model = *this;
    model.load_time_ = seconds_per_byte;
    model.chain_latency_ += more_latency;
    model.largest_transfer_ /= parts;
    return model;
  }

  /// The largest power of two, from `smallest_chunk` on, whose fill stays under half a percent of the time that the
  /// fullest link needs, larger where overhead asks for it or where there would be more than `max_chunk_hops`; never
  /// more than the largest transfer needs.
  [[nodiscard]] Bytes choose(Bytes size) const;

  /// How many rounds ahead (Pacing::ahead) keep sender-receiver pairs in step at this chunk size and no one waiting for
  /// latencies: a few, and as many as the longest chain of latencies takes. 0 where nothing can get out of step: no
  /// transfer waits for another, or there are fewer chunks than that.
  [[nodiscard]] std::uint32_t rounds_ahead(Bytes size, Bytes chunk) const;

  /// What the fullest link's load takes, in seconds.
  [[nodiscard]] double load_time(Bytes size) const { return load_time_ * static_cast<double>(size.count); }

  /// The longest chain of latencies, in seconds.
  [[nodiscard]] double latency() const { return chain_latency_; }

  /// About what the best schedule of these loads and latencies takes, in seconds: the fullest link's load and then the
  /// longest chain of latencies.
  [[nodiscard]] double pipelined_time(Bytes size) const { return load_time(size) + chain_latency_; }

  /// As pipelined_time, and then what the first chunk of this size takes along the longest chain.
  [[nodiscard]] double filled_time(Bytes size, Bytes chunk) const {
    return pipelined_time(size) + chain_fill_ * static_cast<double>(chunk.count);
  }

  /// Chunks times links of a call that is cut so: every transfer has as many chunks as the largest (Chunking).
  [[nodiscard]] double chunk_hops(Bytes size, Bytes chunk) const {
    const double bytes = largest_transfer_ * static_cast<double>(size.count);
    return hops_ * std::max(1.0, std::ceil(bytes / static_cast<double>(chunk.count)));
  }

  [[nodiscard]] std::size_t rank_count() const { return rank_count_; }

  /// The part of the message that the largest transfer carries.
  [[nodiscard]] double largest_part() const { return largest_transfer_; }

  /// The smallest chunk, a power of two, with which a call makes no more than so many chunk_hops; the largest transfer
  /// where no chunk does.
  [[nodiscard]] Bytes smallest_within(Bytes size, double chunk_hops) const;

  /// A time that no chunk size beats: the longest chain of latencies, or the fullest link's load, in seconds.
  [[nodiscard]] double min_time(Bytes size) const;

  static constexpr Bytes smallest_chunk{4096};
  static constexpr std::int64_t max_chunk_hops = 4'000'000;
  static constexpr double max_rounds_ahead = 1000;

 private:
  ChunkModel() = default;

  double load_time_ = 0;         ///< Seconds per byte of S at the fullest link.
  double chain_fill_ = 0;        ///< Seconds per byte of a chunk along the longest chain.
  double chain_latency_ = 0;     ///< Seconds along the chain of the largest latency.
  double overhead_bytes_ = 0;    ///< Largest overhead times rate: the bytes that a message costs.
  double hops_ = 0;              ///< Links that the schedule's transfers cross.
  double largest_transfer_ = 0;  ///< Bytes of the largest transfer, per byte of S.
  std::size_t rank_count_ = 0;
  bool has_chains_ = false;  ///< Some transfer sends what another one brought.
};

}  // namespace espalier::planners
