#pragma once

#include <cstdint>
#include <vector>

#include "schedule/chunking.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"
#include "sim/event_queue.h"
#include "sim/history.h"
#include "sim/lanes.h"
#include "sim/network.h"
#include "sim/progress.h"

namespace espalier::sim {

/// The event loop of the `link` model. One event per chunk and resource: a chunk's head asks, and because resources
/// serve in the order of asking, it is certain at once when the resource takes it and when it leaves.
///
/// Invariants: (1) events are handled in the order of (time, transfer, chunk); what an event causes at its own time
/// belongs to the same chunk or a later one, so the order within a resource is that of docs/simulator.md; (2) a lane is
/// in at most one waiting list.
class LinkModel {
 public:
  /// All must outlive this object; `history` may be null. Resources of `network` count what they serve.
  LinkModel(const Schedule& schedule, const Chunking& chunking, const Dependencies& dependencies, const Lanes& lanes,
            Network& network, History* history);

  /// Runs to the end.
  void run();

  [[nodiscard]] std::int64_t elapsed() const { return elapsed_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  /// A chunk in the network, or on its way into it.
  struct Packet {
    std::int64_t bytes = 0;
    std::int64_t last_byte = 0;  ///< When its last byte reaches the next resource.
    std::int64_t travel = 0;     ///< Latency of the resources behind it.
    TransferId transfer;
    std::uint32_t chunk = 0;
    std::uint32_t step = 0;  ///< The step of the network that its head asks for next.
    LaneIndex lane = no_lane;
    bool ends_transfer = false;
  };

  void hand_over(LaneIndex lane);
  bool find_ready_time(LaneIndex index, const ByteRange& bytes);
  void send(LaneIndex index, std::int64_t bytes, bool ends_transfer);
  void ask(std::int64_t time, std::uint32_t packet);
  bool hold_back(std::uint32_t packet);
  void serve(std::uint32_t packet);
  void depart(ChunkId chunk, std::int64_t time, LaneIndex index, bool ends_transfer);
  void arrive(ChunkId chunk, std::int64_t time, bool ends_transfer);
  void wake(ChunkId chunk, Wait wait);
  [[nodiscard]] bool is_later(const Event& a, const Event& b) const;
  void sort_batch();
  Event next_of_now(std::size_t& position);

  const Schedule& schedule_;
  const Chunking& chunking_;
  const Dependencies& dependencies_;
  const std::vector<TransferId>& next_on_lane_;
  Network& network_;
  History* history_;

  std::vector<Lane> lanes_;
  Progress progress_;
  std::vector<LaneIndex> first_waiting_;  // by transfer
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;

  EventQueue queue_;
  std::vector<Event> batch_;  // the events of `now_`, in order
  std::vector<Event> late_;   // those that arose at `now_` itself: a heap
  std::vector<Event> scratch_;
  std::int64_t now_ = -1;
  std::int64_t elapsed_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace espalier::sim
