#pragma once

// Tested by: tests/unit/engine/measure/measure_pairs_test.cpp

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/communicator/communicator.h"

namespace espalier::engine {

/// One rank sending to another.
struct RankPair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

struct PairOptions {
  std::int64_t bytes = std::int64_t{16} << 20U;  ///< Of one transfer.
  std::uint32_t transfers = 5;                   ///< Those that count; one before them does not.
  double max_rate = 0;                           ///< Bytes per second that a pair sends on average; 0: no limit.
  std::chrono::milliseconds max_time{1000};      ///< Of a pair: it ends after the transfer that goes past that.
  MemorySpace space = MemorySpace::host;
};

/// What one pair took, at its receiver.
struct PairTimes {
  std::vector<double> seconds;  ///< Of each transfer that counts; at least one.
  double latency = 0;           ///< Seconds of a byte one way: half of the median round trip.
};

/// What all pairs of one round took, in their order, and how long the job has measured.
struct PairRound {
  std::vector<PairTimes> pairs;
  double elapsed = 0;  ///< Seconds since the meter was made, by rank 0's clock.
};

/// Measures pairs of ranks, as many at once as are given. Every transfer begins when the receiver asks for it.
class PairMeter {
 public:
  /// Allocates this rank's buffer; the communicator outlives the meter. Collective. Errors: those of `allocate`.
  static Result<std::unique_ptr<PairMeter>> make(Communicator& communicator, const PairOptions& options);
  PairMeter(const PairMeter&) = delete;
  PairMeter& operator=(const PairMeter&) = delete;
  ~PairMeter();

  /// All pairs send at the same time; every rank gets the same result. Collective: all ranks give the same pairs.
  /// Requires: no rank is in two pairs. Errors: those of the calls.
  Result<PairRound> measure(std::span<const RankPair> pairs);

 private:
  PairMeter(Communicator& communicator, const PairOptions& options);
  Result<std::int64_t> measure_round_trip(const RankPair& pair, bool sends);
  Result<std::vector<std::int64_t>> receive_from(std::uint32_t peer);
  Result<void> send_to(std::uint32_t peer);
  Result<void> send_token(std::uint32_t peer, std::uint8_t value);
  Result<std::uint8_t> receive_token(std::uint32_t peer);

  Communicator& communicator_;
  PairOptions options_;
  std::vector<std::uint32_t> members_;
  std::int64_t start_ns_ = 0;
  void* buffer_ = nullptr;  ///< What is sent or received.
  void* token_ = nullptr;   ///< A byte, where the device reaches it.
};

}  // namespace espalier::engine
