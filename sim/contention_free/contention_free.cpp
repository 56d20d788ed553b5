#include "sim/contention_free/contention_free.h"

#include <algorithm>

#include "sim/core/program_order.h"
#include "sim/core/workload.h"
#include "sim/link/link_service.h"

namespace espalier::sim {
namespace {

/// Carries chunks one after the other (ProgramOrder::run).
class ContentionFreeRun {
 public:
  ContentionFreeRun(const CompiledSchedule& compiled, const Network& network, const Conditions& conditions,
                    std::int32_t payload_ppm)
      : compiled_(compiled),
        payload_ppm_(static_cast<std::uint32_t>(payload_ppm)),
        service_(network, conditions),
        lanes_(compiled.lanes().first.size()) {
    for (std::size_t i = 0; i < compiled.paths().size(); ++i) {
      if (const LaneIndex lane = compiled.lane_of(RouteId(i)); lane != no_lane) ++lanes_[lane].routes;
    }
  }

  template <bool probed>
  bool carry(ChunkId id, const Transfer& transfer, std::int64_t bytes, const ProgramOrder::Waits& waits,
             ProgramOrder::Times& times) {
    const Path& path = compiled_.path(transfer);
    LaneState& lane = lanes_[compiled_.lane_of(transfer.route)];
    const ChunkInService chunk = in_service(bytes, id);
    std::int64_t asked = waits.ready + path.overhead;
    if (has_holds_) asked = hold_back(lane, asked);
    std::int64_t last_byte = asked;
    const std::uint32_t end = path.end_of(transfer);
    std::int64_t shift = no_shift;
    for (std::uint32_t step = path.begin; step < end; ++step) {
      const std::uint32_t resource = compiled_.steps()[step];
      if (step == path.end) asked = last_byte;
      const std::int64_t free_before = service_.server(resource).free_at;
      if (free_before > asked) [[unlikely]] {  // a branch, so that mostly nothing has to wait for what is in memory
        if (!note_hold(lane, {asked, free_before - travel(path, step)})) return false;
      }
      const auto passage = service_.serve(resource, chunk, step - path.begin, step == path.end, asked, last_byte);
      if (passage.done == never) return false;
      if constexpr (probed) {
        const std::int64_t moved = passage.done - free_before;
        shift = step == path.begin || shift == moved ? moved : no_shift;
      }
      if (step == path.first_link) times.left = passage.left;
      last_byte = passage.last_byte;
      asked = passage.head;
    }
    totals_.events += end - path.begin;
    totals_.elapsed = std::max(totals_.elapsed, last_byte);
    times.arrived = last_byte;
    if constexpr (probed) {
      shift_ = shift;
      latest_lane_ = &lane;
      latest_arrival_ = last_byte;
    }
    return true;
  }

  [[nodiscard]] std::int64_t shift() const {
    if (!service_.is_uniform() || shift_ == no_shift || before_.size() != latest_lane_->holds.size()) return no_shift;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (latest_lane_->holds[i] != before_[i].moved(shift_)) return no_shift;
    }
    return shift_;
  }

  void repeat(const Transfer& transfer, std::int64_t bytes, std::uint32_t count, std::int64_t shift) {
    const Path& path = compiled_.path(transfer);
    const ChunkInService chunk = in_service(bytes, {});
    const std::uint32_t end = path.end_of(transfer);
    for (std::uint32_t step = path.begin; step < end; ++step) {
      service_.repeat(compiled_.steps()[step], chunk, step == path.end, count, shift);
    }
    for (Hold& hold : latest_lane_->holds) hold = hold.moved(count * shift);
    totals_.events += std::uint64_t{count} * (end - path.begin);
    totals_.elapsed = std::max(totals_.elapsed, latest_arrival_ + count * shift);
  }

  RunTotals take(std::uint32_t links) {
    totals_.links = service_.uses(links);
    return std::move(totals_);
  }

 private:
  /// A queue that a lane's next chunk would stand in (docs/simulator.md, "Back-pressure").
  struct Hold {
    std::int64_t known_at = 0;  ///< When the chunk ahead came to the queue.
    std::int64_t until = 0;     ///< Asked later than this, the next one will not stand in it.

    [[nodiscard]] Hold moved(std::int64_t by) const { return {known_at + by, until + by}; }
    friend bool operator==(const Hold&, const Hold&) = default;
  };
  struct LaneState {
    std::vector<Hold> holds;  // those that still matter
    std::uint32_t routes = 0;
  };

  /// A chunk queues. False when one that comes later by a shorter route might be served before it. Not in line, as
  /// hold_back: both are rare, and what they need would slow the loop down.
  [[gnu::noinline]] bool note_hold(LaneState& lane, const Hold& hold) {
    if (lane.routes > 1) return false;
    lane.holds.push_back(hold);
    has_holds_ = true;
    return true;
  }

  /// When the lane's next chunk asks, which would do so at `time`.
  [[gnu::noinline]] std::int64_t hold_back(LaneState& lane, std::int64_t time) {
    before_ = lane.holds;
    const auto holds_at = [](std::int64_t now) {
      return [now](const Hold& hold) { return hold.known_at <= now && hold.until > now; };
    };
    for (auto hold = lane.holds.begin(); hold != lane.holds.end();) {
      hold = std::ranges::find_if(lane.holds, holds_at(time));
      if (hold != lane.holds.end()) time = hold->until;
    }
    // No chunk of the lane will ask earlier.
    std::erase_if(lane.holds, [&](const Hold& hold) { return hold.until <= time; });
    return time;
  }

  /// The latencies and the messages' time on the way to a step.
  [[nodiscard]] std::int64_t travel(const Path& path, std::uint32_t step) const {
    std::int64_t latencies = 0;
    for (std::uint32_t before = path.begin; before < step; ++before) {
      const Server& server = service_.server(compiled_.steps()[before]);
      latencies += server.latency + server.each;
    }
    return latencies;
  }

  [[nodiscard]] ChunkInService in_service(std::int64_t bytes, ChunkId id) const {
    return {bytes, on_the_wire(bytes, payload_ppm_), id.transfer.value(), id.chunk};
  }

  const CompiledSchedule& compiled_;
  std::uint32_t payload_ppm_;
  LinkService service_;
  std::vector<LaneState> lanes_;
  bool has_holds_ = false;  // whether any lane ever had one
  RunTotals totals_;

  // Of the latest chunk that was probed:
  LaneState* latest_lane_ = nullptr;
  std::vector<Hold> before_;  // its lane's before it
  std::int64_t shift_ = no_shift;
  std::int64_t latest_arrival_ = 0;
};

}  // namespace

std::optional<RunTotals> run_contention_free(const CompiledSchedule& compiled, const Chunking& chunking,
                                             const Network& network, const Conditions& conditions,
                                             std::int32_t payload_ppm, std::int64_t start) {
  ContentionFreeRun run(compiled, network, conditions, payload_ppm);
  ProgramOrder order(compiled, chunking, start);
  if (!order.run(run)) return std::nullopt;
  return run.take(network.link_count());
}

}  // namespace espalier::sim
