#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/core/running_model.h"
#include "sim/core/timestep.h"
#include "sim/fair/flow_probe.h"
#include "sim/fair/flow_queue.h"
#include "sim/fair/flow_service.h"
#include "sim/fair/max_min.h"

namespace espalier::sim {

/// The event loop of the `fair` model (docs/fair.md): a chunk is a flow that shares links and backplanes max-min
/// fairly. One event when a flow begins and one when it ends, and one when it asks its source's processor, where
/// messages cost that time; rates are worked out once at the end of every moment, for the flows that are touched. Of a
/// connection, one route of a run, one flow moves at a time.
///
/// Invariants: (1) events are handled in the order of (time, run, transfer, chunk), and what an event causes at its own
/// time belongs to the same chunk or a later one; (2) between two moments every flow has its max-min rate, and what it
/// has carried is known to the byte and beyond: work is counted in bytes x picoseconds x `scale`, whole numbers of 128
/// bits; (3) the queue of ends has the flows that move, each once.
class FairModel final : public RunningModel {
 public:
  FairModel(const Network& network, const Conditions& conditions);

  [[nodiscard]] std::int64_t next_time() const override;
  [[nodiscard]] bool is_idle() const { return next_time() == never; }
  void advance(std::vector<RankEnd>& ended) override;
  [[nodiscard]] std::vector<LinkUse> links() const override;
  void probe(std::span<const Probe> probes) override { waits_.probe(probes); }
  [[nodiscard]] std::vector<Blame> blames() const override { return waits_.take(); }

  /// As LinkModel's; late once its time has passed.
  void set_deadline(RunId /*run*/, std::int64_t end, std::int64_t /*launch*/) { deadline_ = end; }
  [[nodiscard]] bool is_late() const { return now_ > deadline_; }

 private:
  using Work = FlowWork;
  static constexpr FlowIndex no_flow = std::numeric_limits<FlowIndex>::max();

  /// The flow that moves over it, and those that wait for their turn, in the order in which they began.
  struct Connection {
    FlowIndex moving = no_flow;
    FlowIndex first = no_flow;
    FlowIndex last = no_flow;
  };

  /// A chunk in its latency, or on its way through the network.
  struct Flow {
    Work work = 0;           ///< All that it has to carry.
    Work left = 0;           ///< What of it was left at `since`.
    std::int64_t since = 0;  ///< When its rate was set.
    std::int64_t rate = 0;   ///< In bytes per second / scale; 0 while it stalls.
    ChunkInService chunk;
    Run* run = nullptr;
    const Path* path = nullptr;
    std::int64_t latency = 0;  ///< Of all its links.
    std::int64_t begin = 0;
    FlowService::Served handled;       ///< By its source's processor, where messages cost that time.
    FlowService::Served taken;         ///< By its destination's.
    bool asks = false;                 ///< It has yet to ask that processor, at `begin`.
    Connection* connection = nullptr;  ///< None where no other lane has its route.
    FlowIndex next = no_flow;          ///< Of those that wait for their turn.
    TransferId transfer;
    LaneIndex lane = no_lane;
    bool moves = false;  ///< It is in the network, has bytes and its turn.
    bool reduces = false;
    bool ends_transfer = false;

    [[nodiscard]] Work left_at(std::int64_t time) const { return left - static_cast<Work>(rate) * (time - since); }
  };

  /// What a link carried.
  struct Usage {
    Work work = 0;          ///< Of flows that ended, less what they had carried before the link's rate changed last.
    std::int64_t busy = 0;  ///< Before the link's rate changed last.
    std::int64_t bytes = 0;
  };

  [[nodiscard]] std::int64_t next_moment() const;
  void note_added(const Run& run) override;
  void hand_over(Run& run, LaneIndex lane) override;
  std::uint32_t take_slot();
  void prepare(Flow& flow, Run& run, LaneIndex index, std::int64_t payload);
  void push_begin(std::int64_t time, std::uint32_t slot);
  void handle_moment();
  void ask(std::uint32_t slot);
  void take(Flow& flow);
  /// For a Timestep: which chunk of its transfer a flow is.
  [[nodiscard]] auto chunk_of() const {
    return [this](std::uint32_t flow) { return flows_[flow].chunk.chunk; };
  }
  void begin(std::uint32_t slot);
  void move(std::uint32_t slot);
  void end(std::uint32_t slot);
  void leave(std::uint32_t slot);
  void give_turn(Connection& connection);
  void note(const Flow& flow, const FlowService::Served& sum);
  void settle_waits();
  void share();
  void change_rates();
  void close_usage(std::uint32_t link);
  [[nodiscard]] std::span<const std::uint32_t> resources_of(const Flow& flow) const {
    return std::span(flow.run->compiled().steps()).subspan(flow.path->begin, flow.path->end - flow.path->begin);
  }

  std::vector<RateChange> changes_;  // by time
  std::size_t next_change_ = 0;
  FlowService service_;
  MaxMin shares_;
  FlowProbe waits_;
  std::vector<Usage> usage_;          // by link
  std::int64_t longest_latency_ = 0;  // of the routes so far

  std::unordered_map<const Run*, std::vector<Connection>> connections_;  // of a run's routes, where lanes share any
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::uint64_t moving_ = 0;  // flows in the network, stalled ones among them

  std::int64_t deadline_ = never;

  Work known_left_ = 0;  // the last duration worked out: flows of one size and rate take as long
  std::int64_t known_rate_ = 0;
  std::int64_t known_time_ = 0;

  FlowQueue begins_;
  FlowQueue ends_;
  Timestep moment_;  // the events of `now_`
  bool in_moment_ = false;
};

}  // namespace espalier::sim
