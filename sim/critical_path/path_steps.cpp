#include "sim/critical_path/path_steps.h"

#include <algorithm>

#include "sim/core/workload.h"

namespace espalier::sim {

/// How long a resource takes a chunk when nothing disturbs it.
std::int64_t PathSteps::usual_time(ChunkId chunk, const ChunkTrace::Step& step, bool reduces) const {
  const Transfer& transfer = history_.compiled().schedule().transfers[chunk.transfer.index()];
  std::int64_t bytes = history_.chunking().bytes(history_.chunking().pieces(transfer), chunk.chunk);
  if (!reduces) bytes = on_the_wire(bytes, static_cast<std::uint32_t>(history_.payload_ppm()));
  const Resource& resource = history_.network().resources()[step.resource];
  if (resource.each > 0) return resource.each;
  const Bandwidth rate{resource.bytes_per_second};
  return transfer_time(Bytes{bytes}, rate).count;
}

void PathSteps::add_link_step(ChunkId chunk, std::size_t index, std::int64_t begin, std::int64_t end) {
  const ChunkTrace::Step& step = trace_.steps[index];
  const Network& network = history_.network();
  steps_.push_back({.transfer = chunk.transfer,
                    .chunk = chunk.chunk,
                    .link = network.link(step.resource),
                    .node = network.node(step.resource),
                    .copies = network.is_engine(step.resource),
                    .handles = network.is_processor(step.resource),
                    .begin = {begin},
                    .end = {end},
                    .queued = {step.entry - step.asked}});
  probes_.push_back({history_.run(), chunk, step.resource, step.asked, step.entry});
}

/// The first `count` resources of a chunk's way, from its handing over until it left the last of them (`until_left`) or
/// was past its latency. Up to the slowest resource the chunk's head sets the time; from there on it is its last byte,
/// which only waits for latencies.
void PathSteps::add_link_way(ChunkId chunk, const Path& path, std::size_t count, bool until_left) {
  std::size_t slowest = count - 1;
  while (trace_.steps[slowest].leave != trace_.steps[slowest].entry + trace_.steps[slowest].busy) --slowest;
  const bool is_held = trace_.hold.until > trace_.ready + path.overhead;
  for (std::size_t i = count; i-- > 0;) {
    const ChunkTrace::Step& step = trace_.steps[i];
    const bool ends_here = until_left && i == count - 1;
    const std::int64_t last_byte_end = ends_here ? step.leave : step.beyond;
    if (i > slowest) {
      add_link_step(chunk, i, trace_.steps[i - 1].beyond, last_byte_end);
      steps_.back().queued = {};
      probes_.back().end = probes_.back().begin;
    } else {
      const std::int64_t begin = i == 0 && !is_held ? trace_.ready : step.asked;
      add_link_step(chunk, i, begin, i == slowest ? last_byte_end : trace_.steps[i + 1].asked);
      if (i == slowest) steps_.back().slowed = {std::max<std::int64_t>(0, step.busy - usual_time(chunk, step, false))};
    }
    if (i == 0 && !is_held) steps_.back().overhead = {path.overhead};
    if (!ends_here) steps_.back().latency = {step.beyond - step.leave};
  }
  if (is_held) add_hold(chunk, path);
}

/// What a chunk was held back for: it would have queued there.
void PathSteps::add_hold(ChunkId chunk, const Path& path) {
  const Network& network = history_.network();
  const Hold& hold = trace_.hold;
  const std::int64_t asked = trace_.ready + path.overhead;
  steps_.push_back({.transfer = chunk.transfer,
                    .chunk = chunk.chunk,
                    .link = network.link(hold.resource),
                    .node = network.node(hold.resource),
                    .copies = network.is_engine(hold.resource),
                    .handles = network.is_processor(hold.resource),
                    .begin = {trace_.ready},
                    .end = {hold.until},
                    .queued = {hold.until - asked},
                    .overhead = {path.overhead}});
  probes_.push_back({history_.run(), chunk, hold.resource, asked + hold.travel, hold.until + hold.travel});
}

void PathSteps::add_flow(ChunkId chunk, const Path& path, Until until) {
  const Network& network = history_.network();
  const std::uint32_t resource = flow_.slowest(network);
  const ChunkTrace::Step& slowest = *std::ranges::find(flow_.recorded.steps, resource, &ChunkTrace::Step::resource);
  const std::int64_t alone = usual_time(chunk, slowest, false);
  // Where it departs, one latency before its last byte is there, it paid the latency ahead.
  const bool departs = until == Until::departed;
  const std::int64_t ahead = departs ? flow_.latency(network) : 0;
  const std::int64_t queued = std::max<std::int64_t>(0, flow_.end() - flow_.begin() - alone);
  const ChunkTrace::Step* const source = flow_.source(network);
  const std::int64_t handed = source != nullptr ? source->entry + source->busy : flow_.recorded.ready;
  const std::int64_t overhead = source != nullptr ? 0 : path.overhead;
  steps_.push_back({.transfer = chunk.transfer,
                    .chunk = chunk.chunk,
                    .link = network.link(resource),
                    .node = network.node(resource),
                    .copies = network.is_engine(resource),
                    .begin = {handed},
                    .end = {departs ? flow_.departed(network) : flow_.end()},
                    .queued = {queued},
                    .overhead = {overhead},
                    .latency = {flow_.begin() - handed - overhead - ahead}});
  probes_.push_back({history_.run(), chunk, resource, flow_.end() - queued, flow_.end()});
  if (source != nullptr) add_handling(chunk, *source, flow_.recorded.ready, path.overhead);
}

/// A processor's work on a chunk in the model fair, from when the chunk was there, or ready with so much overhead to
/// come.
void PathSteps::add_handling(ChunkId chunk, const ChunkTrace::Step& step, std::int64_t begin, std::int64_t overhead) {
  steps_.push_back({.transfer = chunk.transfer,
                    .chunk = chunk.chunk,
                    .link = {},
                    .node = history_.network().node(step.resource),
                    .handles = true,
                    .begin = {begin},
                    .end = {step.entry + step.busy},
                    .queued = {std::max<std::int64_t>(0, step.entry - begin - overhead)},
                    .overhead = {overhead},
                    .slowed = {std::max<std::int64_t>(0, step.busy - usual_time(chunk, step, false))}});
  probes_.push_back({history_.run(), chunk, step.resource, step.entry, step.entry});
}

Origin PathSteps::add(ChunkId chunk, Until until) {
  const Path& path = path_of(chunk);
  const std::size_t way = path.end - path.begin;
  const Network& network = history_.network();
  const auto add_sum = [&](const ChunkTrace::Step& sum, std::int64_t there) {
    steps_.push_back({.transfer = chunk.transfer,
                      .chunk = chunk.chunk,
                      .link = {},
                      .node = network.node(sum.resource),
                      .reduces = true,
                      .begin = {there},
                      .end = {sum.entry + sum.busy},
                      .queued = {sum.entry - there},
                      .slowed = {std::max<std::int64_t>(0, sum.busy - usual_time(chunk, sum, true))}});
    // Who is added before is only asked for where resources serve one after the other.
    probes_.push_back({history_.run(), chunk, sum.resource, is_fair() ? sum.entry : there, sum.entry});
  };
  if (is_fair()) {
    flow_.read(history_, chunk);
    if (until == Until::arrived) {
      const ChunkTrace::Step* const taken = flow_.destination(network);
      const std::int64_t there = std::max(flow_.end(), taken != nullptr ? taken->entry + taken->busy : 0);
      if (flow_.is_reduced()) add_sum(flow_.recorded.steps.back(), there);
      if (there > flow_.end()) add_handling(chunk, *taken, flow_.end(), 0);
    }
    add_flow(chunk, path, until);
    return flow_.recorded.origin;
  }
  history_.trace(chunk, trace_);
  if (until == Until::arrived) {
    if (trace_.steps.size() > way) add_sum(trace_.steps.back(), trace_.steps.back().asked);
    add_link_way(chunk, path, way, false);
  } else {
    add_link_way(chunk, path, path.first_link - path.begin + 1, true);
  }
  return trace_.origin;
}

std::int64_t PathSteps::end_of(ChunkId chunk, Until until) {
  if (is_fair()) {
    flow_.read(history_, chunk);
    if (until == Until::arrived) return flow_.arrived();
    return until == Until::left ? flow_.end() : flow_.departed(history_.network());
  }
  history_.trace(chunk, trace_);
  const Path& path = path_of(chunk);
  return until == Until::arrived ? trace_.arrived() : trace_.steps[path.first_link - path.begin].leave;
}

/// Cuts a step into what its time went into.
void PathSteps::divide(const CriticalStep& step, std::uint32_t probe, CriticalPath& path) const {
  std::int64_t left = (step.end - step.begin).count;
  const auto take = [&](PathUse use, LinkId link, std::int64_t most, std::uint32_t of = no_probe) {
    const std::int64_t taken = std::clamp<std::int64_t>(most, 0, left);
    if (taken > 0) path.parts.push_back({use, link, link.is_none() ? step.node : NodeId(), {taken}, of});
    left -= taken;
    return taken;
  };
  const bool is_flow = is_fair() && !step.reduces && !step.handles;
  take(is_flow ? PathUse::sharing : PathUse::queueing, step.link, step.queued.count, probe);
  take(PathUse::overhead, step.link, step.overhead.count);
  std::int64_t latency = step.latency.count;
  if (is_flow) {
    // Of the whole route, in one step.
    const Path& way = path_of({step.transfer, step.chunk});
    for (std::uint32_t i = way.begin; i < way.end; ++i) {
      const std::uint32_t resource = history_.compiled().steps()[i];
      const Resource& passed = history_.network().resources()[resource];
      latency -= take(PathUse::latency, history_.network().link(resource), std::min(latency, passed.latency));
    }
  }
  take(PathUse::latency, step.link, latency);
  take(PathUse::slowed, step.link, step.slowed.count);
  const PathUse rest = !step.link.is_none() ? PathUse::moving
                       : step.reduces       ? PathUse::reducing
                       : step.handles       ? PathUse::overhead
                       : step.copies        ? PathUse::copying
                                            : PathUse::in_backplane;
  take(rest, step.link, left);
}

void PathSteps::finish(CriticalPath& path) {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const bool waits = probes_[i].length() > 0;
    const auto probe = waits ? static_cast<std::uint32_t>(path.probes.size()) : no_probe;
    if (waits) path.probes.push_back(probes_[i]);
    divide(steps_[i], probe, path);
    path.steps.push_back(steps_[i]);
  }
}

}  // namespace espalier::sim
