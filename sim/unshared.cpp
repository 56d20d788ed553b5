#include "sim/unshared.h"

#include <algorithm>

#include "sim/program_order.h"
#include "sim/server.h"
#include "sim/workload.h"

namespace espalier::sim {
namespace {

class UnsharedRun {
 public:
  UnsharedRun(const Program& program, const Network& network, const Conditions& conditions, std::int32_t payload_ppm)
      : program_(program),
        profiles_(conditions.changes, network.link_count()),
        jitter_(conditions.jitter_ppm, conditions.seed),
        payload_ppm_(payload_ppm),
        servers_(make_servers(network, profiles_)) {}

  /// Takes a chunk from its source to its destination; false when it would queue on the way.
  bool carry(ChunkId id, const Transfer& transfer, std::int64_t bytes, const ProgramOrder::Waits& waits,
             ProgramOrder::Times& times) {
    const Path& path = program_.path(transfer);
    const std::int64_t wire =
        payload_ppm_ == whole_ppm ? bytes : on_the_wire(bytes, static_cast<std::uint32_t>(payload_ppm_));
    std::int64_t asked = waits.ready + path.overhead;
    std::int64_t last_byte = asked;
    const std::uint32_t end = path.end_of(transfer);
    for (std::uint32_t step = path.begin; step < end; ++step) {
      Server& server = servers_[program_.steps()[step]];
      if (step == path.end) asked = last_byte;
      if (server.free_at > asked) return false;
      const std::int64_t served = step == path.end ? bytes : wire;
      std::int64_t duration = server.service_time(served);
      if (jitter_.is_on()) duration += jitter_.extra(duration, id.transfer.value(), id.chunk, step - path.begin);
      const std::int64_t done = server.serve(asked, served, duration, profiles_);
      if (done == never) return false;
      const std::int64_t leave = std::max(done, last_byte);
      if (step == path.first_link) times.left = leave;
      last_byte = leave + server.latency;
      asked += server.latency;
    }
    totals_.events += end - path.begin;
    totals_.elapsed = std::max(totals_.elapsed, last_byte);
    times.arrived = last_byte;
    return true;
  }

  RunTotals take(std::uint32_t links) {
    for (std::uint32_t i = 0; i < links; ++i) totals_.links.push_back({servers_[i].bytes, {servers_[i].busy}});
    return std::move(totals_);
  }

 private:
  const Program& program_;
  RateProfiles profiles_;
  Jitter jitter_;
  std::int32_t payload_ppm_;
  std::vector<Server> servers_;
  RunTotals totals_;
};

}  // namespace

std::optional<RunTotals> run_unshared(const Program& program, const Chunking& chunking, const Network& network,
                                      const Conditions& conditions, std::int32_t payload_ppm, std::int64_t start) {
  UnsharedRun run(program, network, conditions, payload_ppm);
  ProgramOrder order(program, chunking, start);
  const bool done =
      order.run([&](ChunkId id, const Transfer& transfer, std::int64_t bytes, const ProgramOrder::Waits& waits,
                    ProgramOrder::Times& times) { return run.carry(id, transfer, bytes, waits, times); });
  if (!done) return std::nullopt;
  return run.take(network.link_count());
}

}  // namespace espalier::sim
