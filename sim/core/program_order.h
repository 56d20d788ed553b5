#pragma once

// Tested by: tests/unit/sim/simulate_test.cpp

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"

namespace espalier::sim {

/// The most chunks whose arrivals a ProgramOrder keeps: 1 GiB.
inline constexpr std::uint64_t max_contention_free_chunks = std::uint64_t{1} << 27U;

/// A carrier's shift when what it remembers did not move as one.
inline constexpr std::int64_t no_shift = -1;

/// Goes through the chunks of a compiled schedule that does not share resources in program order. A transfer waits for
/// earlier ones only, so everything that a chunk waits for is known when its turn comes.
class ProgramOrder {
 public:
  /// When a chunk left its source and when it was at its destination.
  struct Times {
    std::int64_t left = 0;
    std::int64_t arrived = 0;
  };
  /// What a chunk waited for.
  struct Waits {
    std::int64_t ready = 0;  ///< The latest of the departures and arrivals, and of the start.
    std::int64_t known = 0;  ///< The latest of the departures of others, each with the lag of its route.
  };

  /// All ranks enter at `start`. `lags`: by route, how long after a departure it is known; empty: at once.
  ProgramOrder(const CompiledSchedule& compiled, const Chunking& chunking, std::int64_t start,
               std::vector<std::int64_t> lags = {})
      : compiled_(compiled), chunking_(chunking), lags_(std::move(lags)), left_(compiled.lanes().first.size(), start) {}

  /// Has every chunk carried by a Carrier, which has
  ///   bool carry<probed>(id, transfer, bytes, waits, times): works out a chunk's times; false when it cannot;
  ///   std::int64_t shift(): by how much all that it remembers, as far as the next chunk depends on it, moved with
  ///     the latest one, which was probed; `no_shift` when not everything moved alike;
  ///   void repeat(transfer, bytes, count, shift): as many more chunks like the latest, each `shift` after the one
  ///     before.
  /// A chunk's times follow from when it is ready and from what the carrier remembers, by sums and maxima: when all of
  /// these move by the same shift, so do its times. So chunks of one length that are ready in step with what they leave
  /// behind go as one run, and cost what it takes to see that they are ready in step.
  /// False when the carrier failed once, or past max_contention_free_chunks.
  template <class Carrier>
  bool run(Carrier& carrier) {
    if (!make_room()) return false;
    const std::size_t count = compiled_.schedule().transfers.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Transfer& transfer = compiled_.schedule().transfers[i];
      const Pieces pieces = chunking_.pieces(transfer);
      const bool probed = pieces.count > 1 && find_streams(TransferId(i));
      const bool done = probed ? run_chunks<true>(carrier, TransferId(i), transfer, pieces)
                               : run_chunks<false>(carrier, TransferId(i), transfer, pieces);
      if (!done) return false;
    }
    return true;
  }

 private:
  template <bool probed, class Carrier>
  bool run_chunks(Carrier& carrier, TransferId transfer_id, const Transfer& transfer, const Pieces& pieces) {
    std::int64_t& left = left_[compiled_.lane_of(transfer.route)];
    for (std::uint32_t chunk = 0; chunk < pieces.count; ++chunk) {
      const std::int64_t bytes = chunking_.bytes(pieces, chunk);
      const ChunkId id{transfer_id, chunk};
      const Waits waits = find_waits(id, transfer, left);
      Times times;
      if (!carrier.template carry<probed>(id, transfer, bytes, waits, times)) return false;
      const std::uint64_t index = first_chunk_[transfer_id.index()] + chunk;
      arrived_[index] = times.arrived;
      if (!departed_.empty()) departed_[index] = times.left;
      left = times.left;
      if constexpr (probed) {
        const std::int64_t shift = chunk + 1 < pieces.count ? carrier.shift() : no_shift;
        if (shift == no_shift) continue;
        const std::uint32_t most = chunking_.alike_behind(pieces, chunk);
        const std::uint32_t count = count_in_step(chunk, most, waits.ready, left, shift);
        if (count == 0) continue;
        carrier.repeat(transfer, bytes, count, shift);
        continue_times(index, count, times, shift);
        left += count * shift;
        chunk += count;
      }
    }
    return true;
  }

  bool make_room() {
    std::uint64_t chunks = 0;
    const std::vector<Transfer>& transfers = compiled_.schedule().transfers;
    first_chunk_.reserve(transfers.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      first_chunk_.push_back(chunks);
      chunks += chunking_.pieces(transfers[i]).count;
    }
    if (chunks > max_contention_free_chunks) return false;
    arrived_.resize(chunks);
    if (compiled_.dependencies().wait_for_departures()) departed_.resize(chunks);
    return true;
  }

  [[nodiscard]] Waits find_waits(ChunkId id, const Transfer& transfer, std::int64_t left) const {
    Waits waits{left, 0};
    for (const Dependency dependency : compiled_.dependencies().of(id.transfer)) {
      const Transfer& earlier = compiled_.schedule().transfers[dependency.transfer().index()];
      const std::uint32_t needed = chunking_.needed_chunk(earlier, transfer, id.chunk);
      if (needed == no_chunk) continue;
      const bool departure = dependency.wait() == Wait::departure;
      const std::int64_t time =
          (departure ? departed_ : arrived_)[first_chunk_[dependency.transfer().index()] + needed];
      waits.ready = std::max(waits.ready, time);
      if (departure && !lags_.empty()) waits.known = std::max(waits.known, time + lags_[earlier.route.index()]);
    }
    return waits;
  }

  /// Finds where the times are that the transfer's chunks wait for; false when not every chunk waits for those of its
  /// own number only.
  bool find_streams(TransferId id) {
    streams_.clear();
    const std::vector<Transfer>& transfers = compiled_.schedule().transfers;
    for (const Dependency dependency : compiled_.dependencies().of(id)) {
      const std::size_t earlier = dependency.transfer().index();
      const bool departure = dependency.wait() == Wait::departure;
      if (!chunking_.are_in_step(transfers[earlier], transfers[id.index()]) || (departure && !lags_.empty()))
        return false;
      streams_.push_back((departure ? departed_ : arrived_).data() + first_chunk_[earlier]);
    }
    return true;
  }

  /// How many of the `most` chunks behind one are each ready `shift` after the one before.
  [[nodiscard]] std::uint32_t count_in_step(std::uint32_t chunk, std::uint32_t most, std::int64_t ready,
                                            std::int64_t left, std::int64_t shift) const {
    for (std::uint32_t count = 0; count < most; ++count) {
      std::int64_t next = left;
      for (const std::int64_t* stream : streams_) next = std::max(next, stream[chunk + 1 + count]);
      ready += shift;
      left += shift;
      if (next != ready) return count;
    }
    return most;
  }

  /// Notes the times of `count` more chunks, each `shift` after the one before.
  void continue_times(std::uint64_t index, std::uint32_t count, const Times& times, std::int64_t shift) {
    for (std::uint32_t i = 1; i <= count; ++i) arrived_[index + i] = times.arrived + i * shift;
    if (departed_.empty()) return;
    for (std::uint32_t i = 1; i <= count; ++i) departed_[index + i] = times.left + i * shift;
  }

  const CompiledSchedule& compiled_;
  const Chunking& chunking_;
  std::vector<std::int64_t> lags_;
  std::vector<std::int64_t> left_;  // by lane: when its latest chunk left its source
  std::vector<std::uint64_t> first_chunk_;
  std::vector<std::int64_t> arrived_;
  std::vector<std::int64_t> departed_;        // empty when nothing waits for a departure
  std::vector<const std::int64_t*> streams_;  // of the transfer at hand: by dependency, the times of chunks
};

}  // namespace espalier::sim
