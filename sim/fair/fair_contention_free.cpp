#include <algorithm>
#include <limits>

#include "sim/contention_free/contention_free.h"
#include "sim/core/program_order.h"
#include "sim/core/workload.h"
#include "sim/fair/flow_service.h"
#include "sim/limits.h"

namespace espalier::sim {
namespace {

/// What all chunks of a route have in common.
struct Way {
  std::int64_t latency = 0;
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();  ///< Of its slowest resource.
};

std::vector<Way> ways_of(const CompiledSchedule& compiled, const Network& network, const FlowService& service) {
  std::vector<Way> ways;
  for (const Path& path : compiled.paths()) {
    Way way{.latency = service.latency(compiled, path)};
    for (std::uint32_t i = path.begin; i < path.end; ++i) {
      way.rate = std::min(way.rate, network.resources()[compiled.steps()[i]].bytes_per_second * service.scale());
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
  ContentionFreeFlows(const CompiledSchedule& compiled, const Network& network, FlowService& service,
                      std::int32_t payload_ppm, const std::vector<Way>& ways)
      : compiled_(compiled),
        network_(network),
        service_(service),
        payload_ppm_(static_cast<std::uint32_t>(payload_ppm)),
        ways_(ways),
        carried_(network.link_count()),
        lane_ends_(compiled.lanes().first.size(), 0) {}

  template <bool probed>
  bool carry(ChunkId id, const Transfer& transfer, std::int64_t payload, const ProgramOrder::Waits& waits,
             ProgramOrder::Times& times) {
    const Path& path = compiled_.path(transfer);
    const Way& way = ways_[transfer.route.index()];
    const ChunkInService chunk = in_service(payload, id);
    std::int64_t& lane_end = lane_ends_[compiled_.lane_of(transfer.route)];
    has_shift_ = false;
    const std::int64_t sent = handle(service_.source_step(compiled_, path), chunk, path, waits.ready + path.overhead);
    const std::int64_t begin = std::max({sent + way.latency, waits.known, lane_end});
    const std::int64_t end = begin + flow(chunk, path, way);
    note_shift(end - lane_end);
    lane_end = end;
    times.left = end - way.latency;
    times.arrived = std::max(end, handle(service_.destination_step(compiled_, path), chunk, path, begin));
    if (path.end_of(transfer) != path.end) times.arrived = reduce(chunk, path, times.arrived);
    latest_arrival_ = times.arrived;
    totals_.events += path.end_of(transfer) - path.begin;
    totals_.elapsed = std::max(totals_.elapsed, times.arrived);
    return true;
  }

  [[nodiscard]] std::int64_t shift() const { return service_.has_jitter() ? no_shift : shift_; }

  void repeat(const Transfer& transfer, std::int64_t payload, std::uint32_t count, std::int64_t shift) {
    const Path& path = compiled_.path(transfer);
    const ChunkInService chunk = in_service(payload, {});
    const std::uint32_t end = path.end_of(transfer);
    note_carried(path, service_.work(chunk) * count, chunk.wire * count);
    lane_ends_[compiled_.lane_of(transfer.route)] += count * shift;
    for (const std::uint32_t step : {service_.source_step(compiled_, path), service_.destination_step(compiled_, path),
                                     end != path.end ? path.end : FlowService::no_step}) {
      if (step != FlowService::no_step) service_.free_at(compiled_.steps()[step]) += count * shift;
    }
    totals_.events += std::uint64_t{count} * (end - path.begin);
    totals_.elapsed = std::max(totals_.elapsed, latest_arrival_ + count * shift);
  }

  RunTotals take() {
    for (std::uint32_t i = 0; i < network_.link_count(); ++i) {
      const std::int64_t capacity = network_.resources()[i].bytes_per_second * service_.scale();
      totals_.links.push_back({carried_[i].bytes, {divide_up(carried_[i].work, capacity)}});
    }
    return std::move(totals_);
  }

 private:
  struct Carried {
    FlowWork work = 0;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] ChunkInService in_service(std::int64_t payload, ChunkId id) const {
    return {payload, on_the_wire(payload, payload_ppm_), id.transfer.value(), id.chunk};
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
  std::int64_t flow(const ChunkInService& chunk, const Path& path, const Way& way) {
    if (chunk.wire == 0) return 0;
    const FlowWork work = service_.work(chunk);
    note_carried(path, work, chunk.wire);
    if (work != known_work_ || way.rate != known_rate_) {
      known_work_ = work;
      known_rate_ = way.rate;
      known_time_ = divide_up(work, way.rate);
    }
    return known_time_;
  }

  /// What is remembered moved by so much with the latest chunk.
  void note_shift(std::int64_t shift) {
    if (has_shift_ && shift != shift_) shift = no_shift;
    shift_ = shift;
    has_shift_ = true;
  }

  /// A processor, if one is at this step, handles a chunk that asks at `time`; returns when it is done.
  std::int64_t handle(std::uint32_t step, const ChunkInService& chunk, const Path& path, std::int64_t time) {
    if (step == FlowService::no_step) return time;
    const std::uint32_t processor = compiled_.steps()[step];
    const std::int64_t before = service_.free_at(processor);
    const std::int64_t done = service_.handle(processor, chunk, step - path.begin, time).done;
    note_shift(done - before);
    return done;
  }

  /// Adds a chunk whose last byte is there at `end`; returns when it is done.
  std::int64_t reduce(const ChunkInService& chunk, const Path& path, std::int64_t end) {
    const std::uint32_t resource = compiled_.steps()[path.end];
    const std::int64_t before = service_.free_at(resource);
    const std::int64_t done = service_.reduce(resource, chunk, path.end - path.begin, end).done;
    note_shift(done - before);
    return done;
  }

  const CompiledSchedule& compiled_;
  const Network& network_;
  FlowService& service_;
  std::uint32_t payload_ppm_;
  const std::vector<Way>& ways_;         // by route
  std::vector<Carried> carried_;         // by link
  std::vector<std::int64_t> lane_ends_;  // by lane: of its last flow; the next one's route may have less latency
  FlowWork known_work_ = 0;              // the last duration worked out: most flows of a link are alike
  std::int64_t known_rate_ = 0;
  std::int64_t known_time_ = 0;
  RunTotals totals_;
  std::int64_t shift_ = no_shift;  // of the latest flow
  bool has_shift_ = false;
  std::int64_t latest_arrival_ = 0;
};

}  // namespace

std::optional<RunTotals> run_fair_contention_free(const CompiledSchedule& compiled, const Chunking& chunking,
                                                  const Network& network, const Conditions& conditions,
                                                  std::int32_t payload_ppm, std::int64_t start) {
  if (!conditions.changes.empty()) return std::nullopt;
  FlowService service(network, conditions);
  const std::vector<Way> ways = ways_of(compiled, network, service);
  ContentionFreeFlows flows(compiled, network, service, payload_ppm, ways);
  ProgramOrder order(compiled, chunking, start, lags_of(ways));
  if (!order.run(flows)) return std::nullopt;
  return flows.take();
}

}  // namespace espalier::sim
