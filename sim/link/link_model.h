#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/byte_audit.h"
#include "sim/core/event_queue.h"
#include "sim/core/running_model.h"
#include "sim/core/timestep.h"
#include "sim/link/deadlines.h"
#include "sim/link/link_service.h"
#include "sim/link/lone_runs.h"
#include "sim/link/service_probe.h"

namespace espalier::sim {

/// The event loop of the `link` model. One event per chunk and resource: a chunk's head asks, and because resources
/// serve in the order of asking, it is certain at once when the resource takes it and when it leaves.
///
/// Invariants: (1) events are handled in the order of (time, run, transfer, chunk); what an event causes at its own
/// time belongs to the same chunk or a later one, so the order within a resource is that of docs/simulator.md; (2) a
/// lane is in at most one waiting list.
class LinkModel final : public RunningModel {
 public:
  LinkModel(const Network& network, const Conditions& conditions);

  [[nodiscard]] std::int64_t next_time() const override;
  /// next_time() is `never`, which costs less to ask.
  [[nodiscard]] bool is_idle() const { return ended_.empty() && queue_.empty(); }
  void advance(std::vector<RankEnd>& ended) override;
  void pass(std::int64_t time) override {
    now_ = lone_ ? std::max(now_, time) : now_;
    ++turn_;
  }
  [[nodiscard]] std::vector<LinkUse> links() const override;
  [[nodiscard]] std::uint64_t events() const override { return events_ + (lone_ ? lone_->events() : 0); }
  void probe(std::span<const Probe> probes) override {
    lone_.reset();
    waits_.probe(probes, service_.servers().size());
  }
  [[nodiscard]] std::vector<Blame> blames() const override { return waits_.take(); }

  /// What the network's resources have served.
  [[nodiscard]] const std::vector<Server>& servers() const { return service_.servers(); }

  /// Runs that are alone on their resources, or meet few others there, are simulated once, and again only where they do
  /// so in another way; what is answered is the same. Nothing changes where services depend on more than differences of
  /// times, or where waits are probed. Until such a run is over, links() does not count what it carries. Requires:
  /// before all runs.
  void remember_lone_runs();

  /// The one run that there is has to be over by `end`, or is_late. Requires: no rank has entered it.
  void set_deadline(RunId run, std::int64_t end, std::int64_t launch);
  /// Whether it is certain that the run is not over in time.
  [[nodiscard]] bool is_late() const { return is_late_; }

 private:
  /// A chunk in the network, or on its way into it.
  struct alignas(64) Packet {
    Run* run = nullptr;
    const Path* path = nullptr;
    std::int64_t payload = 0;
    std::int64_t last_byte = 0;  ///< When its last byte reaches the next resource.
    std::int64_t travel = 0;     ///< Latency of the resources behind it.
    TransferId transfer;
    std::uint32_t chunk = 0;
    std::uint32_t step = 0;  ///< The step of its compiled schedule that its head asks for next.
    LaneIndex lane = no_lane;
    bool reduces = false;
    bool ends_transfer = false;

    [[nodiscard]] std::uint32_t order() const { return run->order(transfer); }
    [[nodiscard]] std::uint32_t end() const { return reduces ? path->reduce_end : path->end; }
  };

  void note_added(const Run& run) override;
  void note_given_up(const Run& run) override {
    balances_ = false;
    if (lone_) lone_->give_up(run.id());
  }
  void note_entry(RunId run, Rank rank, std::int64_t time) override {
    if (lone_ && lone_->find(run) != nullptr) lone_->enter({run, rank, time, now_, turn_});
  }
  void note_over(const Run& run) override {
    if (lone_) lone_->note_over(run.id(), run.compiled());
  }
  static bool joins_all(const CompiledSchedule& compiled, const RunOptions& options);
  bool put_aside(RunId run, const CompiledSchedule& compiled, const RunOptions& options) override;
  bool enter_aside(RunId run, Rank rank, std::int64_t time) override;
  void take_back(RunId run) override { replay(lone_->give_up(run)); }
  bool join_group(RunId run, const CompiledSchedule& compiled, std::int64_t time);
  void replay(const LoneRuns::Replay& replay);
  void end_lone_runs(std::int64_t time, std::vector<RankEnd>& ended);
  void handle_next();
  void hand_over(Run& run, LaneIndex lane) override;
  void send(Run& run, LaneIndex lane, std::int64_t bytes);
  void ask(std::int64_t time, std::uint32_t packet);
  bool hold_back(std::uint32_t packet);
  void serve(std::uint32_t packet);
  void fetch_upcoming() const;
  void check_balance() const;
  /// For a Timestep: which chunk of its transfer a packet is.
  [[nodiscard]] auto chunk_of() const {
    return [this](std::uint32_t packet) { return packets_[packet].chunk; };
  }

  LinkService service_;
  ServiceProbe waits_;
  ByteAudit audit_;  // of debug builds: what has to be carried
  std::optional<Deadlines> deadlines_;
  bool is_late_ = false;
  bool balances_ = true;  // false once a run was given up or stands still: then less is carried
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;

  EventQueue queue_;
  Timestep moment_;  // the events of `now_`
  bool in_moment_ = false;

  std::uint64_t turn_ = 0;                // between which ranks enter
  mutable std::optional<LoneRuns> lone_;  // where they are remembered
};

}  // namespace espalier::sim
