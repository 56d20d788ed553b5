#pragma once

#include <cstdint>
#include <vector>

#include "schedule/chunking.h"
#include "schedule/timeline.h"
#include "sim/program.h"
#include "sim/simulate.h"

namespace espalier::sim {

/// What a chunk waited for last before its sender handed it over.
enum class Cause : std::uint8_t {
  nothing,    ///< It could go at the start.
  lane,       ///< The chunk before it on its lane had to leave the sender.
  arrival,    ///< Bytes that it reads or replaces had to arrive.
  departure,  ///< Bytes that it replaces had to leave.
};

struct Origin {
  ChunkId chunk;  ///< The chunk that it waited for.
  Cause cause = Cause::nothing;
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
  std::vector<Step> steps;

  [[nodiscard]] std::int64_t arrived() const { return steps.back().beyond; }
};

/// What a simulation records of every chunk: when and why it was handed over, and when each resource took it.
/// Everything else follows from these.
class History {
 public:
  History(const Program& program, const Chunking& chunking, const Network& network);

  /// The last call for a chunk counts.
  void origin(ChunkId chunk, Origin origin) { origins_[index(chunk)] = origin; }
  void ready(ChunkId chunk, std::int64_t time) { ready_[index(chunk)] = time; }
  /// Requires: `step` below `steps`, the number of steps of the chunk's path.
  void service(ChunkId chunk, std::uint32_t step, std::uint32_t steps, std::int64_t entry, std::int64_t done) {
    services_[first_service_[chunk.transfer.index()] + std::uint64_t{chunk.chunk} * steps + step] = {entry, done};
  }

  /// Cost: O(steps of the path). `trace` is overwritten, so that its memory can be used again.
  void trace(ChunkId chunk, ChunkTrace& trace) const;

 private:
  [[nodiscard]] std::uint64_t index(ChunkId chunk) const { return first_chunk_[chunk.transfer.index()] + chunk.chunk; }

  struct Service {
    std::int64_t entry = 0;  // when the resource took the chunk
    std::int64_t done = 0;   // and when it was free again
  };

  const Program* program_;
  const Network* network_;
  std::vector<std::uint64_t> first_chunk_;
  std::vector<std::uint64_t> first_service_;
  std::vector<std::int64_t> ready_;
  std::vector<Origin> origins_;
  std::vector<Service> services_;
};

/// The spans of docs/simulator.md, "Timeline", in begin order.
std::vector<Span> make_spans(const Program& program, const Chunking& chunking, const Network& network,
                             const History& history);

/// Walks back from the chunk that arrived last to the start; the steps follow each other without gaps.
std::vector<CriticalStep> find_critical_path(const Program& program, const Chunking& chunking, const Network& network,
                                             const History& history);

}  // namespace espalier::sim
