#pragma once

// Tested by: tests/unit/engine/cuda/device_program_test.cpp

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/cuda/device_program.h"
#include "engine/program/rank_program.h"
#include "schedule/schedule.h"

namespace espalier::engine::cuda {

/// A place in the order that all ranks share: steps only wait for steps before them in it.
struct MoveOrder {
  std::uint32_t level = 0;
  SliceId first_slice;
  std::uint32_t slice_count = 0;
  std::uint32_t chunk = 0;
  TransferId transfer;
  bool is_receive = false;  ///< A mailbox is filled before it is read.
  friend auto operator<=>(const MoveOrder&, const MoveOrder&) = default;
};

/// An op as one team of thread blocks carries it out.
struct Move {
  std::uint32_t lane = 0;
  std::uint32_t index = 0;  ///< Of the op within its stream.
  MoveOrder order;
  bool is_attached = false;             ///< Part of another move's step: a destination of it.
  std::uint32_t by = 0;                 ///< That move; itself where not attached.
  std::vector<std::uint32_t> attached;  ///< Moves whose data is what this one writes.
};

enum class LaneKind : std::uint8_t {
  pull,     ///< The destination reads the source's memory.
  send,     ///< The source fills the destination's mailbox.
  receive,  ///< The destination reads its mailbox.
};

/// A team that carries out moves of a lane, and its counters of them.
struct LaneExecutor {
  std::uint32_t team = 0;
  std::uint32_t counter = 0;  ///< Of the first part.
  std::uint32_t count = 0;
  /// By index: moves up to there are done when the counter is so high.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reached;
};

/// One end's work on a stream.
struct Lane {
  LaneKind kind = LaneKind::pull;
  Rank rank;                 ///< Whose team carries out moves that are not attached.
  std::uint32_t stream = 0;  ///< At that rank.
  std::uint32_t peer_stream = 0;
  Rank peer;
  std::uint32_t first_move = 0;
  std::uint32_t op_count = 0;
  std::uint32_t team = 0;
  bool by_host = false;
  std::vector<LaneExecutor> executors;
  std::uint32_t placed = 0;  ///< Moves of which it is known when they are carried out,
  MoveOrder latest;          ///< and the latest of those.
};

/// The blocks that share lanes: one, or as many as carry out a stream together.
struct Team {
  Rank rank;
  std::vector<std::uint32_t> moves = {};  ///< Those with a step, in order.
  bool by_host = false;                   ///< It has one lane, which hosts carry out.
};

/// Which teams carry out which ops of all streams, in which order, and the counters that say so.
class MovePlan {
 public:
  /// Requires: the programs of all ranks; options of 1 at least.
  MovePlan(const Schedule& schedule, const std::vector<RankProgram>& ranks, const BlockOptions& options);

  [[nodiscard]] std::uint32_t parts() const { return parts_; }
  [[nodiscard]] std::uint32_t counter_count() const { return counter_count_; }
  [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
  [[nodiscard]] const std::vector<Team>& teams() const { return teams_; }  ///< By rank; each rank has one.
  [[nodiscard]] std::size_t move_count() const { return moves_.size(); }
  [[nodiscard]] const Move& move(std::uint32_t id) const { return moves_[id]; }
  [[nodiscard]] std::uint32_t team_of(std::uint32_t move) const { return lanes_[moves_[moves_[move].by].lane].team; }
  /// The lane in which a rank's stream leaves or arrives.
  [[nodiscard]] const Lane& lane_at(Rank rank, std::uint32_t stream) const {
    return lanes_[lane_of_[rank.index()][stream]];
  }
  /// The op of a move, at its source or its destination.
  [[nodiscard]] const Op& op_at(const Move& move, bool at_source) const;
  /// The source and the destination of a lane.
  [[nodiscard]] Rank source_of(const Lane& lane) const { return lane.kind == LaneKind::send ? lane.rank : lane.peer; }
  [[nodiscard]] Rank target_of(const Lane& lane) const { return lane.kind == LaneKind::send ? lane.peer : lane.rank; }
  /// The counter of a move's first part.
  [[nodiscard]] std::uint32_t counter_of(std::uint32_t move) const;
  /// Calls add (counter, count) for those that say that the first `count` ops of a lane are done: of all parts. Leaves
  /// out a team's own where asked to.
  template <class Add>
  void for_each_wait(const Lane& lane, std::uint32_t count, std::uint32_t without_team, const Add& add) const {
    for (const LaneExecutor& executor : lane.executors) {
      if (executor.team == without_team) continue;
      const std::uint32_t goal = goal_of(executor, count);
      for (std::uint32_t part = 0; goal > 0 && part < parts_; ++part) add(executor.counter + part, goal);
    }
  }

 private:
  static std::uint32_t goal_of(const LaneExecutor& executor, std::uint32_t count);
  void add_lanes(Rank rank);
  void add_lane(Rank rank, std::uint32_t stream, std::uint32_t team);
  /// Whether hosts move what goes between two ranks.
  [[nodiscard]] bool is_by_host(Rank a, Rank b) const {
    return !options_.in_kernel.empty() && !(options_.in_kernel[a.index()] && options_.in_kernel[b.index()]);
  }
  void find_peer_streams();
  void attach_all();
  [[nodiscard]] std::uint32_t find_producer(const Move& forward) const;
  [[nodiscard]] bool has_same_bytes(const Move& producer, const Move& forward) const;
  [[nodiscard]] bool waits_before(const Move& forward, const Move& producer);
  void number_counters();
  LaneExecutor& executor_of(Lane& lane, std::uint32_t team);
  [[nodiscard]] const RankProgram& program(Rank rank) const { return ranks_[rank.index()]; }

  const Schedule& schedule_;
  const std::vector<RankProgram>& ranks_;
  BlockOptions options_;
  std::uint32_t parts_;           ///< Of every stream.
  std::uint32_t teams_per_rank_;  ///< The most.
  std::vector<Lane> lanes_;
  std::vector<Move> moves_;
  std::vector<Team> teams_;
  std::vector<std::vector<std::uint32_t>> lane_of_;  ///< By rank and stream.
  std::uint32_t counter_count_ = 0;
};

}  // namespace espalier::engine::cuda
