#include <algorithm>
#include <limits>

#include "sim/contention_free/contention_free.h"
#include "sim/core/jitter.h"
#include "sim/core/program_order.h"
#include "sim/core/workload.h"
#include "sim/fair/fair_rates.h"
#include "sim/limits.h"

namespace espalier::sim {
namespace {

__extension__ using FlowWork = __int128;  // bytes x picoseconds per second x scale, as in FairModel

std::int64_t divide_up(FlowWork above, std::int64_t below) {
  return static_cast<std::int64_t>((above + below - 1) / below);
}

/// What all chunks of a route have in common.
struct Way {
  std::int64_t latency = 0;
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();  ///< Of its slowest resource.
};

std::vector<Way> ways_of(const CompiledSchedule& compiled, const Network& network, std::int64_t scale) {
  std::vector<Way> ways;
  for (const Path& path : compiled.paths()) {
    Way way;
    for (std::uint32_t i = path.begin; i < path.end; ++i) {
      const Resource& resource = network.resources()[compiled.steps()[i]];
      way.latency += resource.latency;
      way.rate = std::min(way.rate, resource.bytes_per_second * scale);
    }
    ways.push_back(way);
  }
  return ways;
}

std::vector<std::int64_t> lags_of(const std::vector<Way>& ways) {
  std::vector<std::int64_t> lags;
  lags.reserve(ways.size());
  for (const Way& way : ways) lags.push_back(way.latency);
  return lags;
}

class ContentionFreeFlows {
 public:
  ContentionFreeFlows(const CompiledSchedule& compiled, const Network& network, const Conditions& conditions,
                      std::int32_t payload_ppm, std::int64_t scale, const std::vector<Way>& ways)
      : compiled_(compiled),
        network_(network),
        jitter_(conditions.jitter_ppm, conditions.seed),
        payload_ppm_(payload_ppm),
        scale_(scale),
        ways_(ways),
        free_at_(network.resources().size(), 0),
        carried_(network.link_count()),
        lane_ends_(compiled.lanes().first.size(), 0) {}

  template <bool probed>
  bool carry(ChunkId id, const Transfer& transfer, std::int64_t payload, const ProgramOrder::Waits& waits,
             ProgramOrder::Times& times) {
    const Path& path = compiled_.path(transfer);
    const Way& way = ways_[transfer.route.index()];
    const std::int64_t bytes = on_the_wire_of(payload);
    std::int64_t& lane_end = lane_ends_[compiled_.lane_of(transfer.route)];
    const std::int64_t begin = std::max({waits.ready + path.overhead + way.latency, waits.known, lane_end});
    const std::int64_t end = begin + flow(id, path, way, bytes);
    shift_ = end - lane_end;
    lane_end = end;
    times.left = end - way.latency;
    times.arrived = path.end_of(transfer) == path.end ? end : reduce(id, path, payload, end);
    latest_arrival_ = times.arrived;
    totals_.events += path.end_of(transfer) - path.begin;
    totals_.elapsed = std::max(totals_.elapsed, times.arrived);
    return true;
  }

  [[nodiscard]] std::int64_t shift() const { return jitter_.is_on() ? no_shift : shift_; }

  void repeat(const Transfer& transfer, std::int64_t payload, std::uint32_t count, std::int64_t shift) {
    const Path& path = compiled_.path(transfer);
    const std::int64_t bytes = on_the_wire_of(payload);
    const std::uint32_t end = path.end_of(transfer);
    note_carried(path, work_of(bytes) * count, bytes * count);
    lane_ends_[compiled_.lane_of(transfer.route)] += count * shift;
    if (end != path.end) free_at_[compiled_.steps()[path.end]] += count * shift;
    totals_.events += std::uint64_t{count} * (end - path.begin);
    totals_.elapsed = std::max(totals_.elapsed, latest_arrival_ + count * shift);
  }

  RunTotals take() {
    for (std::uint32_t i = 0; i < network_.link_count(); ++i) {
      const std::int64_t capacity = network_.resources()[i].bytes_per_second * scale_;
      totals_.links.push_back({carried_[i].bytes, {divide_up(carried_[i].work, capacity)}});
    }
    return std::move(totals_);
  }

 private:
  struct Carried {
    FlowWork work = 0;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] std::int64_t on_the_wire_of(std::int64_t payload) const {
    return payload_ppm_ == whole_ppm ? payload : on_the_wire(payload, static_cast<std::uint32_t>(payload_ppm_));
  }

  [[nodiscard]] FlowWork work_of(std::int64_t bytes) const {
    return static_cast<FlowWork>(bytes) * picoseconds_per_second * scale_;
  }

  void note_carried(const Path& path, FlowWork work, std::int64_t bytes) {
    for (std::uint32_t i = path.begin; i < path.end; ++i) {
      const std::uint32_t resource = compiled_.steps()[i];
      if (resource >= carried_.size()) continue;
      carried_[resource].work += work;
      carried_[resource].bytes += bytes;
    }
  }

  /// How long the bytes flow, at the full rate of the slowest resource.
  std::int64_t flow(ChunkId id, const Path& path, const Way& way, std::int64_t bytes) {
    if (bytes == 0) return 0;
    FlowWork work = work_of(bytes);
    if (jitter_.is_on()) {
      const std::int64_t part = jitter_.extra(std::int64_t{1} << 32U, id.transfer.value(), id.chunk, 0);  // of 2^32
      work += (work >> 32U) * part;
    }
    note_carried(path, work, bytes);
    if (work != known_work_ || way.rate != known_rate_) {
      known_work_ = work;
      known_rate_ = way.rate;
      known_time_ = divide_up(work, way.rate);
    }
    return known_time_;
  }

  /// Adds a chunk whose last byte is there at `end`; returns when it is done.
  std::int64_t reduce(ChunkId id, const Path& path, std::int64_t payload, std::int64_t end) {
    const std::uint32_t resource = compiled_.steps()[path.end];
    std::int64_t duration =
        transfer_time(Bytes{payload}, Bandwidth{network_.resources()[resource].bytes_per_second}).count;
    if (jitter_.is_on()) duration += jitter_.extra(duration, id.transfer.value(), id.chunk, path.end - path.begin);
    std::int64_t& free_at = free_at_[resource];
    const std::int64_t done = std::max(end, free_at) + duration;
    if (done - free_at != shift_) shift_ = no_shift;
    return free_at = done;
  }

  const CompiledSchedule& compiled_;
  const Network& network_;
  Jitter jitter_;
  std::int32_t payload_ppm_;
  std::int64_t scale_;
  const std::vector<Way>& ways_;         // by route
  std::vector<std::int64_t> free_at_;    // by resource: when a reduction is done with all that came
  std::vector<Carried> carried_;         // by link
  std::vector<std::int64_t> lane_ends_;  // by lane: of its last flow; the next one's route may have less latency
  FlowWork known_work_ = 0;              // the last duration worked out: most flows of a link are alike
  std::int64_t known_rate_ = 0;
  std::int64_t known_time_ = 0;
  RunTotals totals_;
  std::int64_t shift_ = no_shift;  // of the latest flow
  std::int64_t latest_arrival_ = 0;
};

}  // namespace

std::optional<RunTotals> run_fair_contention_free(const CompiledSchedule& compiled, const Chunking& chunking,
                                                  const Network& network, const Conditions& conditions,
                                                  std::int32_t payload_ppm, std::int64_t start) {
  if (!conditions.changes.empty()) return std::nullopt;
  const std::int64_t scale = pick_rate_scale(network);
  const std::vector<Way> ways = ways_of(compiled, network, scale);
  ContentionFreeFlows flows(compiled, network, conditions, payload_ppm, scale, ways);
  ProgramOrder order(compiled, chunking, start, lags_of(ways));
  if (!order.run(flows)) return std::nullopt;
  return flows.take();
}

}  // namespace espalier::sim
