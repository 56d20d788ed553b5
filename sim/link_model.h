#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/event_queue.h"
#include "sim/jitter.h"
#include "sim/ledger.h"
#include "sim/model.h"
#include "sim/rate_profile.h"
#include "sim/run.h"
#include "sim/server.h"
#include "sim/workload.h"

namespace espalier::sim {

/// The event loop of the `link` model. One event per chunk and resource: a chunk's head asks, and because resources
/// serve in the order of asking, it is certain at once when the resource takes it and when it leaves.
///
/// Invariants: (1) events are handled in the order of (time, run, transfer, chunk); what an event causes at its own
/// time belongs to the same chunk or a later one, so the order within a resource is that of docs/simulator.md; (2) a
/// lane is in at most one waiting list; (3) memory goes with the runs under way: those that are over are used again.
class LinkModel final : public Model {
 public:
  LinkModel(const Network& network, const Conditions& conditions);

  [[nodiscard]] Result<RunId> add(const Program& program, const RunOptions& options) override;
  void enter(RunId run, Rank rank, std::int64_t time) override;
  void enter_all(RunId run, std::int64_t time) override;
  void abort(RunId run) override;
  [[nodiscard]] std::int64_t next_time() const override;
  void advance(std::vector<RankEnd>& ended) override;
  [[nodiscard]] std::vector<LinkUse> links() const override;
  [[nodiscard]] std::uint64_t events() const override { return events_; }

  /// As `add`, for what was checked before; `history` (may be null) records it.
  [[nodiscard]] RunId add_checked(const Program& program, Chunking chunking, std::int32_t payload_ppm,
                                  History* history);

  /// When the last byte of all runs so far arrived.
  [[nodiscard]] std::int64_t elapsed() const { return elapsed_; }
  /// Whether every chunk that was handed over has arrived, or will.
  [[nodiscard]] bool is_idle() const { return queue_.empty() && late_.empty(); }

 private:
  /// A chunk in the network, or on its way into it.
  struct Packet {
    Run* run = nullptr;
    const Path* path = nullptr;
    std::int64_t bytes = 0;
    std::int64_t last_byte = 0;  ///< When its last byte reaches the next resource.
    std::int64_t travel = 0;     ///< Latency of the resources behind it.
    TransferId transfer;
    std::uint32_t order = 0;
    std::uint32_t chunk = 0;
    std::uint32_t step = 0;  ///< The step of its program that its head asks for next.
    LaneIndex lane = no_lane;
    bool reduces = false;
    bool ends_transfer = false;
  };

  void hand_over(Run& run, LaneIndex lane);
  void send(Run& run, LaneIndex lane, std::int64_t bytes);
  void ask(std::int64_t time, std::uint32_t packet);
  bool hold_back(std::uint32_t packet);
  void serve(std::uint32_t packet);
  [[nodiscard]] std::int64_t serve_packet(Server& server, const Packet& packet, std::int64_t entry);
  void drop(std::uint32_t packet);
  void check_balance() const;
  /// Forgets a run of which nothing is left.
  void let_go(Run& run);
  [[nodiscard]] bool is_later(const Event& a, const Event& b) const;
  void sort_batch();
  Event next_of_now(std::size_t& position);

  const Network& network_;
  RateProfiles profiles_;
  Jitter jitter_;
  WorkLimit limit_;
  std::vector<Server> servers_;
  Ledger ledger_;                            // of debug builds: what has to be carried
  bool balances_ = true;                     // false once a run was given up or stands still: then less is carried
  std::vector<std::unique_ptr<Run>> runs_;   // by id; null when over
  std::vector<std::unique_ptr<Run>> spare_;  // over, for use by later ones
  std::uint32_t next_order_ = 0;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;

  EventQueue queue_;
  std::vector<Event> batch_;  // the events of `now_`, in order
  std::vector<Event> late_;   // those that arose at `now_` itself: a heap
  std::vector<Event> scratch_;
  std::vector<RankEnd> ended_;  // not yet reported
  std::int64_t now_ = -1;
  bool in_batch_ = false;
  std::int64_t elapsed_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace espalier::sim
