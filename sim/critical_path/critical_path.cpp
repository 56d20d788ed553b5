#include "sim/critical_path/critical_path.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/check.h"
#include "sim/core/history.h"
#include "sim/critical_path/path_steps.h"

namespace espalier::sim {
namespace {

/// What a rank, or a run, was through with last.
struct LastChunk {
  std::int64_t time = -1;
  ChunkId chunk;
  Until until = Until::arrived;
};

/// Visits the last chunk of every transfer, with when the sender was through with it and when it was there.
template <class Visit>
void for_each_last_chunk(const History& history, const Visit& visit) {
  const std::vector<Transfer>& transfers = history.compiled().schedule().transfers;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    visit(transfers[i], ChunkId{TransferId(i), history.chunking().pieces(transfers[i]).count - 1});
  }
}

std::vector<LastChunk> find_ends(const History& history) {
  const Schedule& schedule = history.compiled().schedule();
  std::vector<LastChunk> ends(schedule.collective.rank_count);
  PathSteps steps(history);
  for_each_last_chunk(history, [&](const Transfer& transfer, ChunkId chunk) {
    const auto note = [&](Rank rank, Until until) {
      if (rank.index() >= ends.size()) return;
      const std::int64_t time = steps.end_of(chunk, until);
      if (time > ends[rank.index()].time) ends[rank.index()] = {time, chunk, until};
    };
    note(schedule.src(transfer), Until::left);
    note(schedule.dst(transfer), Until::arrived);
  });
  return ends;
}

/// Whose taking part let a chunk go that waited for nothing else: of two the sender. Where only relays are concerned
/// the first rank that took part.
Rank find_entering(const History& history, ChunkId chunk) {
  const Schedule& schedule = history.compiled().schedule();
  const Transfer& transfer = schedule.transfers[chunk.transfer.index()];
  const std::int64_t ready = history.ready_time(chunk);
  for (const Rank end : {schedule.src(transfer), schedule.dst(transfer)}) {
    if (end.index() < history.entries().size() && history.entries()[end.index()] == ready) return end;
  }
  return history.first_entered();
}

CriticalPath walk_back(const History& history, const LastChunk& end) {
  PathSteps steps(history);
  ChunkId at = end.chunk;
  Until until = end.until;
  std::uint32_t window_waits = 0;
  while (true) {
    const Origin origin = steps.add(at, until);
    if (origin.cause == Cause::nothing) break;
    window_waits += origin.cause == Cause::window ? 1 : 0;
    until = origin.cause == Cause::arrival ? Until::arrived : Until::departed;
    at = origin.chunk;
  }
  CriticalPath path;
  path.root = find_entering(history, at);
  path.begin = history.ready_time(at);
  path.end = end.time;
  steps.finish(path);
  path.window_waits = window_waits;
  return path;
}

}  // namespace

std::string_view to_string(PathUse use) {
  switch (use) {
    case PathUse::moving: return "moving over";
    case PathUse::queueing: return "queueing for";
    case PathUse::sharing: return "sharing";
    case PathUse::slowed: return "slowed on";
    case PathUse::latency: return "the latency of";
    case PathUse::overhead: return "messages on";
    case PathUse::reducing: return "reducing at";
    case PathUse::copying: return "in the copy engines of";
    case PathUse::in_backplane: return "in the backplane of";
    case PathUse::launch: return "the launch at";
  }
  ESPALIER_CHECK(false, "a use of time without a name");
}

CriticalPath find_critical_path(const History& history) {
  PathSteps steps(history);
  LastChunk last;
  for_each_last_chunk(history, [&](const Transfer&, ChunkId chunk) {
    const std::int64_t time = steps.end_of(chunk, Until::arrived);
    if (time > last.time) last = {time, chunk, Until::arrived};
  });
  return last.time < 0 ? CriticalPath{} : walk_back(history, last);
}

CriticalPath find_critical_path(const History& history, Rank rank) {
  const std::int64_t entry = history.entries()[rank.index()];
  const LastChunk end = find_ends(history)[rank.index()];
  if (end.time > entry) return walk_back(history, end);
  return {.steps = {}, .parts = {}, .probes = {}, .window_waits = 0, .root = rank, .begin = entry, .end = entry};
}

std::vector<Rank> find_roots(const History& history) {
  const std::vector<LastChunk> ends = find_ends(history);
  std::vector<Rank> roots;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    roots.emplace_back(i);
    if (history.entries()[i] == never || ends[i].time <= history.entries()[i]) continue;
    ChunkId at = ends[i].chunk;
    while (history.origin_of(at).cause != Cause::nothing) at = history.origin_of(at).chunk;
    roots.back() = find_entering(history, at);
  }
  return roots;
}

void settle_waits(CriticalPath& path, std::span<const Blame> blames, const Network& network, bool is_disturbed) {
  std::vector<std::vector<const Blame*>> by_probe(path.probes.size());
  for (const Blame& part : blames) by_probe[part.probe].push_back(&part);
  std::vector<PathPart> settled;
  for (const PathPart& part : path.parts) {
    if (part.use != PathUse::sharing || part.probe == no_probe) {
      settled.push_back(part);
      continue;
    }
    std::map<std::uint32_t, std::int64_t> by_place;
    std::int64_t left = part.time.count;
    for (const Blame* shared : by_probe[part.probe]) {
      by_place[shared->resource] += shared->time;
      left -= shared->time;
    }
    for (const auto& [resource, time] : by_place) {
      settled.push_back({PathUse::sharing, network.link(resource), network.node(resource), {time}, part.probe});
    }
    if (left == 0) continue;
    PathPart rest = part;
    rest.time = {left};
    rest.use = is_disturbed ? PathUse::slowed : PathUse::sharing;
    settled.push_back(rest);
  }
  path.parts = std::move(settled);
}

}  // namespace espalier::sim
