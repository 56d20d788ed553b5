#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/chunking.h"
#include "sim/program.h"

namespace espalier::sim {

/// The most chunks whose arrivals a ProgramOrder keeps: 1 GiB.
inline constexpr std::uint64_t max_unshared_chunks = std::uint64_t{1} << 27U;

/// Goes through the chunks of a program that does not share resources in program order. A transfer waits for earlier
/// ones only, so everything that a chunk waits for is known when its turn comes.
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
  ProgramOrder(const Program& program, const Chunking& chunking, std::int64_t start,
               std::vector<std::int64_t> lags = {})
      : program_(program), chunking_(chunking), lags_(std::move(lags)), left_(program.lanes().first.size(), start) {}

  /// Calls `carry(id, transfer, bytes, waits)` for every chunk, which returns whether it gave the chunk's times in its
  /// last argument. False when it did not once, or past max_unshared_chunks.
  template <class Carry>
  bool run(Carry&& carry) {
    if (!make_room()) return false;
    const std::vector<Transfer>& transfers = program_.schedule().transfers;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const Transfer& transfer = transfers[i];
      const Pieces pieces = chunking_.pieces(transfer);
      std::int64_t& left = left_[program_.lane_of(transfer.route)];
      for (std::uint32_t chunk = 0; chunk < pieces.count; ++chunk) {
        const ByteRange bytes = chunking_.chunk(pieces, chunk);
        const ChunkId id{TransferId(i), chunk};
        Times times;
        if (!carry(id, transfer, bytes.length(), find_waits(id, transfer, bytes, left), times)) return false;
        left = times.left;
        const std::uint64_t index = first_chunk_[i] + chunk;
        arrived_[index] = times.arrived;
        if (!departed_.empty()) departed_[index] = times.left;
      }
    }
    return true;
  }

 private:
  bool make_room() {
    std::uint64_t chunks = 0;
    bool waits_for_departures = false;
    const std::vector<Transfer>& transfers = program_.schedule().transfers;
    first_chunk_.reserve(transfers.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      first_chunk_.push_back(chunks);
      chunks += chunking_.pieces(transfers[i]).count;
      for (const Dependency dependency : program_.dependencies().of(TransferId(i))) {
        waits_for_departures |= dependency.wait() == Wait::departure;
      }
    }
    if (chunks > max_unshared_chunks) return false;
    arrived_.resize(chunks);
    if (waits_for_departures) departed_.resize(chunks);
    return true;
  }

  [[nodiscard]] Waits find_waits(ChunkId id, const Transfer& transfer, const ByteRange& bytes,
                                 std::int64_t left) const {
    Waits waits{left, 0};
    for (const Dependency dependency : program_.dependencies().of(id.transfer)) {
      const Transfer& earlier = program_.schedule().transfers[dependency.transfer().index()];
      const std::uint32_t needed = chunking_.needed_chunk(earlier, transfer, bytes, id.chunk);
      if (needed == no_chunk) continue;
      const bool departure = dependency.wait() == Wait::departure;
      const std::int64_t time =
          (departure ? departed_ : arrived_)[first_chunk_[dependency.transfer().index()] + needed];
      waits.ready = std::max(waits.ready, time);
      if (departure && !lags_.empty()) waits.known = std::max(waits.known, time + lags_[earlier.route.index()]);
    }
    return waits;
  }

  const Program& program_;
  const Chunking& chunking_;
  std::vector<std::int64_t> lags_;
  std::vector<std::int64_t> left_;  // by lane: when its latest chunk left its source
  std::vector<std::uint64_t> first_chunk_;
  std::vector<std::int64_t> arrived_;
  std::vector<std::int64_t> departed_;  // empty when nothing waits for a departure
};

}  // namespace espalier::sim
