#include "sim/unshared.h"

#include <algorithm>

#include "sim/workload.h"

namespace espalier::sim {
namespace {

class UnsharedRun {
 public:
  UnsharedRun(const Program& program, const Chunking& chunking, const Network& network, const Conditions& conditions,
              std::int32_t payload_ppm, std::int64_t start)
      : program_(program),
        chunking_(chunking),
        profiles_(conditions.changes, network.link_count()),
        jitter_(conditions.jitter_ppm, conditions.seed),
        payload_ppm_(payload_ppm),
        start_(start),
        left_(program.lanes().first.size(), start) {
    totals_.servers = make_servers(network, profiles_);
  }

  bool run() {
    const Schedule& schedule = program_.schedule();
    if (!make_room(schedule)) return false;
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      const Pieces pieces = chunking_.pieces(schedule.transfers[i]);
      for (std::uint32_t chunk = 0; chunk < pieces.count; ++chunk) {
        if (!carry({TransferId(i), chunk}, pieces)) return false;
      }
    }
    return true;
  }

  RunTotals take() { return std::move(totals_); }

 private:
  bool make_room(const Schedule& schedule) {
    std::uint64_t chunks = 0;
    bool waits_for_departures = false;
    first_chunk_.reserve(schedule.transfers.size());
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      first_chunk_.push_back(chunks);
      chunks += chunking_.pieces(schedule.transfers[i]).count;
      for (const Dependency dependency : program_.dependencies().of(TransferId(i))) {
        waits_for_departures |= dependency.wait() == Wait::departure;
      }
    }
    if (chunks > max_unshared_chunks) return false;
    arrived_.resize(chunks);
    if (waits_for_departures) departed_.resize(chunks);
    return true;
  }

  /// Takes a chunk from its source to its destination; false when it would queue on the way.
  bool carry(ChunkId id, const Pieces& pieces) {
    const Transfer& transfer = program_.schedule().transfers[id.transfer.index()];
    const Path& path = program_.path(transfer);
    const std::int64_t bytes = chunking_.chunk(pieces, id.chunk).length();
    const std::int64_t wire =
        payload_ppm_ == whole_ppm ? bytes : on_the_wire(bytes, static_cast<std::uint32_t>(payload_ppm_));
    std::int64_t& left = left_[program_.lane_of(transfer.route)];
    std::int64_t asked = std::max(left, ready_time(id, transfer, pieces)) + path.overhead;
    std::int64_t last_byte = asked;
    const std::uint32_t end = path.end_of(transfer);
    for (std::uint32_t step = path.begin; step < end; ++step) {
      Server& server = totals_.servers[program_.steps()[step]];
      if (step == path.end) asked = last_byte;
      if (server.free_at > asked) return false;
      const std::int64_t served = step == path.end ? bytes : wire;
      std::int64_t duration = server.service_time(served);
      if (jitter_.is_on()) duration += jitter_.extra(duration, id.transfer.value(), id.chunk, step - path.begin);
      const std::int64_t done = server.serve(asked, served, duration, profiles_);
      if (done == never) return false;
      const std::int64_t leave = std::max(done, last_byte);
      if (step == path.first_link) left = leave;
      last_byte = leave + server.latency;
      asked += server.latency;
    }
    totals_.events += end - path.begin;
    const std::uint64_t index = first_chunk_[id.transfer.index()] + id.chunk;
    arrived_[index] = last_byte;
    if (!departed_.empty()) departed_[index] = left;
    totals_.elapsed = std::max(totals_.elapsed, last_byte);
    return true;
  }

  /// When everything that the chunk waits for apart from its lane has happened.
  [[nodiscard]] std::int64_t ready_time(ChunkId id, const Transfer& transfer, const Pieces& pieces) const {
    std::int64_t ready = start_;
    const ByteRange bytes = chunking_.chunk(pieces, id.chunk);
    for (const Dependency dependency : program_.dependencies().of(id.transfer)) {
      const TransferId earlier = dependency.transfer();
      const std::uint32_t needed =
          chunking_.needed_chunk(program_.schedule().transfers[earlier.index()], transfer, bytes, id.chunk);
      if (needed == no_chunk) continue;
      const std::vector<std::int64_t>& times = dependency.wait() == Wait::departure ? departed_ : arrived_;
      ready = std::max(ready, times[first_chunk_[earlier.index()] + needed]);
    }
    return ready;
  }

  const Program& program_;
  const Chunking& chunking_;
  RateProfiles profiles_;
  Jitter jitter_;
  std::int32_t payload_ppm_;
  std::int64_t start_;
  std::vector<std::int64_t> left_;  // by lane: when its latest chunk left its source
  std::vector<std::uint64_t> first_chunk_;
  std::vector<std::int64_t> arrived_;
  std::vector<std::int64_t> departed_;  // empty when nothing waits for a departure
  RunTotals totals_;
};

}  // namespace

std::optional<RunTotals> run_unshared(const Program& program, const Chunking& chunking, const Network& network,
                                      const Conditions& conditions, std::int32_t payload_ppm, std::int64_t start) {
  UnsharedRun run(program, chunking, network, conditions, payload_ppm, start);
  if (!run.run()) return std::nullopt;
  return run.take();
}

}  // namespace espalier::sim
