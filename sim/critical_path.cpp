#include <algorithm>

#include "sim/history.h"

namespace espalier::sim {
namespace {

/// The chunk that arrived last; of several, the first in program order.
ChunkId find_last(const Schedule& schedule, const Chunking& chunking, const History& history) {
  ChunkId last;
  std::int64_t latest = -1;
  ChunkTrace trace;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const std::uint32_t chunk = chunking.pieces(schedule.transfers[i]).count - 1;
    history.trace({TransferId(i), chunk}, trace);
    if (trace.arrived() <= latest) continue;
    latest = trace.arrived();
    last = {TransferId(i), chunk};
  }
  return last;
}

/// Turns the ways of chunks into critical steps, latest first.
class StepList {
 public:
  explicit StepList(const Network& network) : network_(network) {}

  /// The reduction at the end of a chunk's way.
  void add_reduction(const ChunkTrace& trace, ChunkId id) {
    const ChunkTrace::Step& step = trace.steps.back();
    add(step, id, step.asked, step.beyond);
    steps_.back().reduces = true;
  }

  /// The first `count` steps of a chunk, from its handing over until it left the last of them (`until_left`) or was
  /// past its latency. Up to the slowest resource the chunk's head sets the time; from there on it is its last byte,
  /// which only waits for latencies.
  void add_way(const ChunkTrace& trace, const Path& path, std::size_t count, bool until_left, ChunkId id) {
    std::size_t slowest = count - 1;
    while (trace.steps[slowest].leave != trace.steps[slowest].entry + trace.steps[slowest].busy) --slowest;
    for (std::size_t i = count; i-- > 0;) {
      const ChunkTrace::Step& step = trace.steps[i];
      const bool ends_here = until_left && i == count - 1;
      const std::int64_t last_byte_end = ends_here ? step.leave : step.beyond;
      if (i > slowest) {
        add(step, id, trace.steps[i - 1].beyond, last_byte_end);
        steps_.back().queued = {};
      } else {
        const std::int64_t begin = i == 0 ? trace.ready : step.asked;
        const std::int64_t end = i == slowest ? last_byte_end : trace.steps[i + 1].asked;
        add(step, id, begin, end);
      }
      if (i == 0) steps_.back().overhead = {path.overhead};
      if (!ends_here) steps_.back().latency = {step.beyond - step.leave};
    }
  }

  std::vector<CriticalStep> take() {
    std::ranges::reverse(steps_);
    return std::move(steps_);
  }

 private:
  void add(const ChunkTrace::Step& step, ChunkId id, std::int64_t begin, std::int64_t end) {
    steps_.push_back({.transfer = id.transfer,
                      .chunk = id.chunk,
                      .link = network_.link(step.resource),
                      .node = network_.node(step.resource),
                      .copies = network_.is_engine(step.resource),
                      .begin = {begin},
                      .end = {end},
                      .queued = {step.entry - step.asked}});
  }

  const Network& network_;
  std::vector<CriticalStep> steps_;
};

}  // namespace

std::vector<CriticalStep> find_critical_path(const Program& program, const Chunking& chunking, const Network& network,
                                             const History& history) {
  const Schedule& schedule = program.schedule();
  if (schedule.transfers.empty()) return {};
  StepList steps(network);
  ChunkId at = find_last(schedule, chunking, history);
  ChunkTrace trace;
  Cause waited_for = Cause::arrival;
  while (waited_for != Cause::nothing) {
    history.trace(at, trace);
    const Path& path = program.path(schedule.transfers[at.transfer.index()]);
    if (waited_for != Cause::arrival) {
      steps.add_way(trace, path, path.first_link - path.begin + 1, true, at);
    } else {
      const std::size_t way = path.end - path.begin;
      if (trace.steps.size() > way) steps.add_reduction(trace, at);
      steps.add_way(trace, path, way, false, at);
    }
    waited_for = trace.origin.cause;
    at = trace.origin.chunk;
  }
  return steps.take();
}

}  // namespace espalier::sim
