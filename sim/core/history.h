#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <cstdint>
#include <map>
#include <vector>

#include "schedule/chunking.h"
#include "schedule/timeline/timeline.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/model.h"

namespace espalier::sim {

/// What a chunk waited for last before its sender handed it over.
enum class Cause : std::uint8_t {
  nothing,    ///< A rank's taking part.
  lane,       ///< The chunk before it on its lane had to leave the sender.
  arrival,    ///< Bytes that it reads or replaces had to arrive.
  departure,  ///< Bytes that it replaces had to leave.
  window,     ///< A chunk of a lower round had to leave the sender.
};

struct Origin {
  ChunkId chunk;  ///< The chunk that it waited for.
  Cause cause = Cause::nothing;
};

/// A lane was held back until then, because its chunks queue at a resource further on (docs/simulator.md,
/// "Back-pressure").
struct Hold {
  std::int64_t until = 0;
  std::uint32_t resource = 0;
  std::int64_t travel = 0;  ///< Latency on the way there.
};

/// One chunk's way, worked out from what was recorded.
struct ChunkTrace {
  struct Step {
    std::uint32_t resource = 0;
    std::int64_t asked = 0;   ///< When the chunk's head asked for the resource.
    std::int64_t entry = 0;   ///< When the resource took it.
    std::int64_t busy = 0;    ///< How long it kept the resource busy.
    std::int64_t leave = 0;   ///< When its last byte left the resource.
    std::int64_t beyond = 0;  ///< When its last byte was past the resource's latency.
  };
  std::int64_t ready = 0;
  Origin origin;
  Hold hold;  ///< Of what it was when it was ready, if `until` is later.
  std::vector<Step> steps;

  [[nodiscard]] std::int64_t arrived() const { return steps.back().beyond; }
};

/// What a model records of a run: when its ranks took part, and of every chunk when and why it was handed over, and
/// when each resource took it. Everything else follows from these.
class History {
 public:
  /// Of a run of a compiled schedule, which must outlive the history, as must the network.
  History(RunId run, const CompiledSchedule& compiled, Chunking chunking, std::int32_t payload_ppm,
          const Network& network, ModelKind kind);

  void entered(Rank rank, std::int64_t time);
  /// The last call for a chunk counts.
  void origin(ChunkId chunk, Origin origin) { origins_[index(chunk)] = origin; }
  void ready(ChunkId chunk, std::int64_t time) { ready_[index(chunk)] = time; }
  /// Requires: `step` below `steps`, the number of steps of the chunk's path.
  void service(ChunkId chunk, std::uint32_t step, std::uint32_t steps, std::int64_t entry, std::int64_t done) {
    services_[first_service_[chunk.transfer.index()] + std::uint64_t{chunk.chunk} * steps + step] = {entry, done};
  }
  /// The lane's next chunk would only queue at a resource if it asked before `hold.until`; the latest counts.
  void hold_lane(LaneIndex lane, const Hold& hold) {
    if (hold.until > lane_holds_[lane].until) lane_holds_[lane] = hold;
  }
  /// A chunk was held as its lane was.
  void held(ChunkId chunk, LaneIndex lane) { holds_[index(chunk)] = lane_holds_[lane]; }

  [[nodiscard]] RunId run() const { return run_; }
  [[nodiscard]] const CompiledSchedule& compiled() const { return *compiled_; }
  [[nodiscard]] const Chunking& chunking() const { return chunking_; }
  [[nodiscard]] const Network& network() const { return *network_; }
  [[nodiscard]] std::int32_t payload_ppm() const { return payload_ppm_; }
  [[nodiscard]] ModelKind kind() const { return kind_; }
  /// By rank; `never` for those that have not taken part.
  [[nodiscard]] const std::vector<std::int64_t>& entries() const { return entries_; }
  /// The rank that took part first; none before.
  [[nodiscard]] Rank first_entered() const { return first_entered_; }

  /// Why a chunk was handed over when it was, without the rest of its way.
  [[nodiscard]] Origin origin_of(ChunkId chunk) const { return origins_[index(chunk)]; }
  [[nodiscard]] std::int64_t ready_time(ChunkId chunk) const { return ready_[index(chunk)]; }

  /// Cost: O(steps of the path). `trace` is overwritten, so that its memory can be used again.
  void trace(ChunkId chunk, ChunkTrace& trace) const;

 private:
  [[nodiscard]] std::uint64_t index(ChunkId chunk) const { return first_chunk_[chunk.transfer.index()] + chunk.chunk; }

  struct Service {
    std::int64_t entry = 0;  // when the resource took the chunk
    std::int64_t done = 0;   // and when it was free again
  };

  RunId run_;
  const CompiledSchedule* compiled_;
  Chunking chunking_;
  std::int32_t payload_ppm_;
  const Network* network_;
  ModelKind kind_;
  std::vector<std::int64_t> entries_;  // by rank
  Rank first_entered_;
  std::vector<std::uint64_t> first_chunk_;
  std::vector<std::uint64_t> first_service_;
  std::vector<std::int64_t> ready_;
  std::vector<Origin> origins_;
  std::vector<Service> services_;
  std::vector<Hold> lane_holds_;         // by lane
  std::map<std::uint64_t, Hold> holds_;  // of the chunks that were held
};

/// The spans of docs/simulator.md, "Timeline", in begin order; in the model fair those of docs/fair.md.
std::vector<Span> make_spans(const History& history);

}  // namespace espalier::sim
