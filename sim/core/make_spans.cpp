#include <algorithm>
#include <tuple>

#include "sim/core/history.h"
#include "sim/fair/flow_trace.h"

namespace espalier::sim {
namespace {

void sort_spans(std::vector<Span>& spans) {
  std::ranges::sort(spans, [](const Span& a, const Span& b) {
    return std::tie(a.begin, a.lane, a.phase, a.transfer, a.chunk, a.end) <
           std::tie(b.begin, b.lane, b.phase, b.transfer, b.chunk, b.end);
  });
}

/// Collects the spans of one chunk after the other.
class SpanMaker {
 public:
  SpanMaker(const CompiledSchedule& compiled, const Network& network)
      : schedule_(compiled.schedule()), compiled_(compiled), network_(network) {}

  void add(TransferId id, std::uint32_t chunk, const ChunkTrace& trace) {
    const Transfer& transfer = schedule_.transfers[id.index()];
    const Path& path = compiled_.path(transfer);
    transfer_ = id;
    chunk_ = chunk;
    const auto step = [&](std::uint32_t index) -> const ChunkTrace::Step& { return trace.steps[index - path.begin]; };
    span(schedule_.src(transfer).value(), Phase::send, trace.ready, step(path.first_link).leave);
    for (const ChunkTrace::Step& passed : trace.steps) {
      const LinkId link = network_.link(passed.resource);
      if (!link.is_none()) span(link.value(), Phase::wire, passed.entry, passed.entry + passed.busy);
    }
    const ChunkTrace::Step& last = step(path.last_link);
    const std::uint32_t dst = schedule_.dst(transfer).value();
    span(dst, Phase::recv, last.entry + network_.resources()[last.resource].latency, step(path.end - 1).beyond);
    if (path.end_of(transfer) == path.end) return;
    span(dst, Phase::reduce, step(path.end).entry, step(path.end).beyond);
  }

  std::vector<Span> take() {
    sort_spans(spans_);
    return std::move(spans_);
  }

 private:
  void span(std::uint32_t lane, Phase phase, std::int64_t begin, std::int64_t end) {
    spans_.push_back({lane, transfer_, chunk_, phase, Picoseconds{begin}, Picoseconds{end}});
  }

  const Schedule& schedule_;
  const CompiledSchedule& compiled_;
  const Network& network_;
  TransferId transfer_;
  std::uint32_t chunk_ = 0;
  std::vector<Span> spans_;
};

std::vector<Span> make_link_spans(const History& history) {
  const Schedule& schedule = history.compiled().schedule();
  SpanMaker maker(history.compiled(), history.network());
  ChunkTrace trace;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const std::uint32_t chunks = history.chunking().pieces(schedule.transfers[i]).count;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      history.trace({TransferId(i), chunk}, trace);
      maker.add(TransferId(i), chunk, trace);
    }
  }
  return maker.take();
}

std::vector<Span> make_fair_spans(const History& history) {
  std::vector<Span> spans;
  FlowTrace trace;
  const Schedule& schedule = history.compiled().schedule();
  const Network& network = history.network();
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const std::uint32_t src = schedule.src(transfer).value();
    const std::uint32_t dst = schedule.dst(transfer).value();
    const std::uint32_t chunks = history.chunking().pieces(transfer).count;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      trace.read(history, {TransferId(i), chunk});
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
  sort_spans(spans);
  return spans;
}

}  // namespace

std::vector<Span> make_spans(const History& history) {
  return history.kind() == ModelKind::fair ? make_fair_spans(history) : make_link_spans(history);
}

}  // namespace espalier::sim
