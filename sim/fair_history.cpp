#include "sim/fair_history.h"

#include <algorithm>
#include <tuple>

#include "sim/workload.h"

namespace espalier::sim {
namespace {

/// One chunk's way, as FairModel recorded it.
struct FlowTrace {
  const Path* path = nullptr;
  ChunkTrace recorded;  // every step's `entry` and `busy` are the flow's, or the reduction's

  void read(const Program& program, const History& history, ChunkId chunk) {
    path = &program.path(program.schedule().transfers[chunk.transfer.index()]);
    history.trace(chunk, recorded);
  }

  [[nodiscard]] std::int64_t begin() const { return recorded.steps.front().entry; }
  [[nodiscard]] std::int64_t end() const { return recorded.steps.front().entry + recorded.steps.front().busy; }
  [[nodiscard]] bool is_reduced() const { return recorded.steps.size() > path->end - path->begin; }
  [[nodiscard]] std::int64_t arrived() const { return recorded.steps.back().entry + recorded.steps.back().busy; }
  [[nodiscard]] std::int64_t latency(const Network& network) const {
    std::int64_t latency = 0;
    for (std::uint32_t i = 0; i < path->end - path->begin; ++i) {
      latency += network.resources()[recorded.steps[i].resource].latency;
    }
    return latency;
  }
  [[nodiscard]] std::int64_t departed(const Network& network) const { return end() - latency(network); }
  /// The first of the slowest of its links and backplanes.
  [[nodiscard]] std::uint32_t slowest(const Network& network) const {
    const auto way = recorded.steps.begin() + (path->end - path->begin);
    const auto rate = [&](const ChunkTrace::Step& step) { return network.resources()[step.resource].bytes_per_second; };
    return std::ranges::min_element(recorded.steps.begin(), way, {}, rate)->resource;
  }
};

ChunkId last_to_arrive(const Program& program, const Chunking& chunking, const History& history) {
  ChunkId last;
  std::int64_t latest = -1;
  FlowTrace trace;
  const std::vector<Transfer>& transfers = program.schedule().transfers;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const ChunkId chunk{TransferId(i), chunking.pieces(transfers[i]).count - 1};
    trace.read(program, history, chunk);
    if (trace.arrived() <= latest) continue;
    latest = trace.arrived();
    last = chunk;
  }
  return last;
}

CriticalStep flow_step(const FlowTrace& trace, const Chunking& chunking, const Network& network,
                       const Transfer& transfer, ChunkId id, bool until_departed, std::int32_t payload_ppm) {
  const std::uint32_t resource = trace.slowest(network);
  const std::int64_t payload = chunking.chunk(chunking.pieces(transfer), id.chunk).length();
  const Bytes bytes{on_the_wire(payload, static_cast<std::uint32_t>(payload_ppm))};
  const std::int64_t alone = transfer_time(bytes, Bandwidth{network.resources()[resource].bytes_per_second}).count;
  // Where it departs, one latency before its last byte is there, it paid the latency ahead.
  const std::int64_t ahead = until_departed ? trace.latency(network) : 0;
  return {.transfer = id.transfer,
          .chunk = id.chunk,
          .link = network.link(resource),
          .node = network.node(resource),
          .copies = network.is_engine(resource),
          .begin = {trace.recorded.ready},
          .end = {until_departed ? trace.departed(network) : trace.end()},
          .queued = {std::max<std::int64_t>(0, trace.end() - trace.begin() - alone)},
          .overhead = {trace.path->overhead},
          .latency = {trace.begin() - trace.recorded.ready - trace.path->overhead - ahead}};
}

}  // namespace

std::vector<Span> make_fair_spans(const Program& program, const Chunking& chunking, const Network& network,
                                  const History& history) {
  std::vector<Span> spans;
  FlowTrace trace;
  const Schedule& schedule = program.schedule();
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::uint32_t src = schedule.src(transfer).value();
    const std::uint32_t dst = schedule.dst(transfer).value();
    const std::uint32_t chunks = chunking.pieces(transfer).count;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      trace.read(program, history, {TransferId(i), chunk});
      const auto span = [&](std::uint32_t lane, Phase phase, std::int64_t begin, std::int64_t end) {
        spans.push_back({lane, TransferId(i), chunk, phase, Picoseconds{begin}, Picoseconds{end}});
      };
      span(src, Phase::send, trace.recorded.ready, trace.departed(network));
      for (const ChunkTrace::Step& step : trace.recorded.steps) {
        const LinkId link = network.link(step.resource);
        if (!link.is_none()) span(link.value(), Phase::wire, trace.begin(), trace.end());
      }
      span(dst, Phase::recv, trace.begin(), trace.end());
      if (trace.is_reduced()) span(dst, Phase::reduce, trace.recorded.steps.back().entry, trace.arrived());
    }
  }
  std::ranges::sort(spans, [](const Span& a, const Span& b) {
    return std::tie(a.begin, a.lane, a.phase, a.transfer, a.chunk, a.end) <
           std::tie(b.begin, b.lane, b.phase, b.transfer, b.chunk, b.end);
  });
  return spans;
}

std::vector<CriticalStep> find_fair_critical_path(const Program& program, const Chunking& chunking,
                                                  const Network& network, const History& history,
                                                  std::int32_t payload_ppm) {
  const Schedule& schedule = program.schedule();
  if (schedule.transfers.empty()) return {};
  std::vector<CriticalStep> steps;  // latest first
  FlowTrace trace;
  ChunkId at = last_to_arrive(program, chunking, history);
  Cause waited_for = Cause::arrival;
  while (waited_for != Cause::nothing) {
    trace.read(program, history, at);
    const Transfer& transfer = schedule.transfers[at.transfer.index()];
    const bool until_departed = waited_for != Cause::arrival;
    if (trace.is_reduced() && !until_departed) {
      const ChunkTrace::Step& sum = trace.recorded.steps.back();
      steps.push_back({.transfer = at.transfer,
                       .chunk = at.chunk,
                       .link = {},
                       .node = network.node(sum.resource),
                       .reduces = true,
                       .begin = {trace.end()},
                       .end = {trace.arrived()},
                       .queued = {sum.entry - trace.end()}});
    }
    steps.push_back(flow_step(trace, chunking, network, transfer, at, until_departed, payload_ppm));
    waited_for = trace.recorded.origin.cause;
    at = trace.recorded.origin.chunk;
  }
  std::ranges::reverse(steps);
  return steps;
}

}  // namespace espalier::sim
