#include "engine/cuda/device_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/cuda/local_order.h"
#include "engine/cuda/move_plan.h"

namespace espalier::engine::cuda {
namespace {

class DeviceCompiler {
 public:
  DeviceCompiler(const Schedule& schedule, const std::vector<RankProgram>& ranks, const BlockOptions& options)
      : ranks_(ranks), plan_(schedule, ranks, options) {
    program_.reduces = reduces(schedule.collective.kind);
    program_.low_latency = options.low_latency;
  }

  DeviceProgram run() {
    program_.counter_count = plan_.counter_count();
    program_.element_size = ranks_.front().element_size;
    for (const RankProgram& rank : ranks_) {
      const auto shift = rank.keeps_input ? std::nullopt : rank.in_place_shift;  // an input that is kept lies elsewhere
      program_.memories.push_back({rank.send_bytes, rank.receive_bytes, rank.scratch_bytes, shift, 0});
    }
    if (program_.low_latency) lay_out_mailboxes();
    for (std::uint32_t team = 0; team < plan_.teams().size(); ++team) add_team(team);
    return std::move(program_);
  }

 private:
  /// A slot for every op that a rank receives.
  void lay_out_mailboxes() {
    local_order_ = find_local_order(plan_, ranks_);
    for (const Lane& lane : plan_.lanes()) {
      if (lane.kind != LaneKind::receive) continue;
      for (std::uint32_t i = 0; i < lane.op_count; ++i) {
        std::int64_t& size = program_.memories[lane.rank.index()].mailbox;
        slots_[lane.first_move + i] = size;
        const Op& op = plan_.op_at(plan_.move(lane.first_move + i), false);
        const RankProgram& rank = ranks_[lane.rank.index()];
        for (std::uint32_t p = 0; p < op.piece_count; ++p)
          size += mailbox_bytes(rank.pieces[op.first_piece + p].length);
      }
    }
  }

  void add_team(std::uint32_t index) {
    const Team& team = plan_.teams()[index];
    const bool is_first = index == 0 || plan_.teams()[index - 1].rank != team.rank;
    if (is_first) copied_parts_ = 0;
    const std::uint32_t parts = blocks_of(team);
    for (std::uint32_t part = 0; part < parts; ++part) {
      const auto first_step = static_cast<std::uint32_t>(program_.steps.size());
      reached_.clear();
      if (is_first && part == 0) begin_step(StepKind::enter, team.rank).signal = team.rank.value();
      for (const std::uint32_t move : team.moves) add_move(team.rank, index, move, part);
      if (!team.by_host) add_own_copies(team.rank);
      if (is_first && part == 0) add_finish(team.rank);
      program_.blocks.push_back(
          {team.rank, first_step, static_cast<std::uint32_t>(program_.steps.size()) - first_step, team.by_host});
    }
  }

  Step& begin_step(StepKind kind, Rank peer) {
    Step& step = program_.steps.emplace_back();
    step.kind = kind;
    step.peer = peer;
    step.first_piece = static_cast<std::uint32_t>(program_.pieces.size());
    step.first_wait = static_cast<std::uint32_t>(program_.waits.size());
    step.first_destination = static_cast<std::uint32_t>(program_.destinations.size());
    return step;
  }

  /// Of several waits for a counter the highest counts.
  void end_step(Step& step) {
    step.piece_count = static_cast<std::uint32_t>(program_.pieces.size()) - step.first_piece;
    step.destination_count = static_cast<std::uint32_t>(program_.destinations.size()) - step.first_destination;
    const auto waits = std::span(program_.waits).subspan(step.first_wait);
    std::ranges::sort(waits, [](const CounterWait& a, const CounterWait& b) {
      return std::pair(a.counter, b.count) < std::pair(b.counter, a.count);
    });
    const auto rest = std::ranges::unique(waits, {}, &CounterWait::counter);
    program_.waits.resize(program_.waits.size() - rest.size());
    step.wait_count = static_cast<std::uint32_t>(program_.waits.size()) - step.first_wait;
  }

  /// A team without moves has blocks for the rank's own copies alone.
  [[nodiscard]] std::uint32_t blocks_of(const Team& team) const {
    return team.moves.empty() && copiers_of(team.rank) < 2 ? 1 : plan_.parts();
  }

  /// The blocks of a rank that share its own copies; the first where reductions are divided in the end, none where
  /// there are none.
  [[nodiscard]] std::uint32_t copiers_of(Rank rank) const {
    if (ranks_[rank.index()].local_copies.empty()) return 0;
    if (program_.reduces) return 1;
    const auto is_own = [&](const Team& team) { return team.rank == rank && !team.by_host; };
    return static_cast<std::uint32_t>(std::ranges::count_if(plan_.teams(), is_own)) * plan_.parts();
  }

  /// A block's share of what a rank copies from its own data into its own result. Nobody else touches these bytes.
  void add_own_copies(Rank rank) {
    const std::uint32_t copiers = copiers_of(rank);
    if (copied_parts_ >= copiers) return;
    const std::uint32_t part = copied_parts_++;
    Step& step = begin_step(StepKind::copy, rank);
    for (const LocalCopy& copy : ranks_[rank.index()].local_copies) {
      take_part(copy.length, part, copiers, [&](std::int64_t begin, std::int64_t length) {
        program_.pieces.push_back({length, moved(copy.from, begin), moved(copy.to, begin), moved(copy.to, begin)});
      });
    }
    end_step(step);
    if (step.piece_count == 0) program_.steps.pop_back();
  }

  /// The part of a piece that a block moves: whole elements, cut where 16-byte accesses begin if the piece does. Calls
  /// use(first byte, length).
  template <class Use>
  void take_part(std::int64_t length, std::uint32_t part, std::uint32_t parts, const Use& use) const {
    const std::int64_t step = std::max<std::int64_t>(program_.element_size, 16);
    const auto pacing = [&](std::int64_t at) {
      return at == std::int64_t{parts} ? length : length / step * at / parts * step;
    };
    if (pacing(part) < pacing(part + 1)) use(pacing(part), pacing(part + 1) - pacing(part));
  }

  static Location moved(const Location& location, std::int64_t by) { return {location.place, location.offset + by}; }

  void wait_for(const Lane& lane, std::uint32_t count, std::uint32_t without_team) {
    plan_.for_each_wait(lane, count, without_team, [&](std::uint32_t counter, std::uint32_t goal) {
      program_.waits.push_back({counter, goal});
    });
  }
  void wait_for_enter(Rank rank) { program_.waits.push_back({rank.value(), 1}); }

  void add_move(Rank rank, std::uint32_t team, std::uint32_t id, std::uint32_t part) {
    const Move& move = plan_.move(id);
    const Lane& lane = plan_.lanes()[move.lane];
    const Op& op = plan_.op_at(move, lane.kind == LaneKind::send);
    const bool is_send = lane.kind == LaneKind::send;
    const StepKind kind = is_send                       ? StepKind::send
                          : lane.kind == LaneKind::pull ? (op.reduces ? StepKind::reduce : StepKind::copy)
                                                        : (op.reduces ? StepKind::receive_reduce : StepKind::receive);
    Step& step = begin_step(kind, is_send ? rank : lane.peer);
    step.transfer = op.transfer;
    step.chunk = op.chunk;
    const RankProgram& own = ranks_[rank.index()];
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const Piece& piece = own.pieces[op.first_piece + i];
      take_part(piece.length, part, plan_.parts(), [&](std::int64_t begin, std::int64_t length) {
        program_.pieces.push_back(
            {length, moved(piece.source, begin), moved(piece.target, begin), moved(piece.first, begin)});
      });
    }
    add_waits(id, team);
    if (is_send) {
      add_destination(id, part);
    } else {
      step.signal = plan_.counter_of(id) + part;
      if (lane.kind == LaneKind::receive) step.mailbox = slots_.at(id);
      if (lane.kind == LaneKind::pull && op.fused != not_fused)
        wait_for_member_before(rank, op.fused, lane.stream, move.index);
    }
    for (const std::uint32_t attached : move.attached) {
      add_waits(attached, team);
      add_destination(attached, part);
    }
    end_step(step);
  }

  /// What a move waits for at its ends, as far as these are its team's business.
  void add_waits(std::uint32_t id, std::uint32_t team) {
    const Move& move = plan_.move(id);
    const Lane& lane = plan_.lanes()[move.lane];
    if (lane.kind != LaneKind::pull) return add_waits_of_mailboxes(id, lane);
    const bool is_first = reached_.insert(move.lane).second;
    add_waits_at(plan_.source_of(lane), plan_.op_at(move, true), move);
    add_waits_at(plan_.target_of(lane), plan_.op_at(move, false), move);
    if (is_first) wait_for_enter(move.is_attached ? plan_.target_of(lane) : plan_.source_of(lane));
    wait_for(lane, move.index, team);
  }

  /// What is passed on has been read already; a mailbox is free when its owner has read what the last call left there.
  void add_waits_of_mailboxes(std::uint32_t id, const Lane& lane) {
    for (const std::uint32_t before : local_order_[id]) {
      wait_for(plan_.lanes()[plan_.move(before).lane], plan_.move(before).index + 1, no_team);
    }
    if (lane.kind == LaneKind::receive) return;
    const Lane& arrival = plan_.lane_at(lane.peer, lane.peer_stream);
    for (const LaneExecutor& executor : arrival.executors) program_.waits.push_back({executor.counter, 0});
  }

  void add_waits_at(Rank at, const Op& op, const Move& move) {
    const RankProgram& program = ranks_[at.index()];
    for (std::uint32_t i = 0; i < op.wait_count; ++i) {
      const LocalWait& wait = program.waits[op.first_wait + i];
      const Lane& lane = plan_.lane_at(at, wait.stream);
      const bool is_producer = move.is_attached && lane.first_move + wait.count - 1 == move.by;
      wait_for(lane, is_producer ? wait.count - 1 : wait.count, no_team);
    }
  }

  void add_destination(std::uint32_t id, std::uint32_t part) {
    const Move& move = plan_.move(id);
    const Lane& lane = plan_.lanes()[move.lane];
    Destination destination;
    destination.rank = plan_.target_of(lane);
    destination.signal = plan_.counter_of(id) + part;
    const Op& op = plan_.op_at(move, lane.kind == LaneKind::send);
    destination.transfer = op.transfer;
    destination.chunk = op.chunk;
    if (lane.kind == LaneKind::send) {
      destination.mailbox = slots_.at(plan_.lane_at(lane.peer, lane.peer_stream).first_move + move.index);
    } else {
      destination.first_target = static_cast<std::uint32_t>(program_.targets.size());
      for (std::uint32_t i = 0; i < op.piece_count; ++i) {
        const Piece& piece = ranks_[lane.rank.index()].pieces[op.first_piece + i];
        take_part(piece.length, part, plan_.parts(),
                  [&](std::int64_t begin, std::int64_t) { program_.targets.push_back(moved(piece.target, begin)); });
      }
    }
    program_.destinations.push_back(destination);
  }

  /// Reductions that the engine fuses are carried out one after the other here, in program order.
  void wait_for_member_before(Rank rank, std::uint32_t fused, std::uint32_t stream, std::uint32_t index) {
    const RankProgram& own = ranks_[rank.index()];
    const FusedReduction& reduction = own.fused_reductions[fused];
    for (std::uint32_t i = 1; i < reduction.member_count; ++i) {
      const OpPlace& member = own.members[reduction.first_member + i];
      if (member.stream != stream || member.index != index) continue;
      const OpPlace& before = own.members[reduction.first_member + i - 1];
      wait_for(plan_.lane_at(rank, before.stream), before.index + 1, no_team);
    }
  }

  void add_finish(Rank rank) {
    Step& step = begin_step(StepKind::finish, rank);
    for (std::uint32_t stream = 0; stream < ranks_[rank.index()].streams.size(); ++stream) {
      const Lane& lane = plan_.lane_at(rank, stream);
      wait_for(lane, lane.op_count, no_team);
    }
    end_step(step);
  }

  static constexpr std::uint32_t no_team = std::numeric_limits<std::uint32_t>::max();

  const std::vector<RankProgram>& ranks_;
  MovePlan plan_;
  std::map<std::uint32_t, std::int64_t> slots_;          ///< By move that receives.
  std::vector<std::vector<std::uint32_t>> local_order_;  ///< By move, with mailboxes.
  std::set<std::uint32_t> reached_;                      ///< Lanes that the block has worked on.
  std::uint32_t copied_parts_ = 0;                       ///< Of the rank's own copies.
  DeviceProgram program_;
};

}  // namespace

Result<DeviceProgram> compile_for_device(const Schedule& schedule, const Layout& layout, const Pacing& pacing,
                                         const BlockOptions& options) {
  ESPALIER_CHECK(options.in_kernel.empty() || !options.low_latency, "hosts fill no mailboxes");
  const auto choose_stream = [&](const Transfer& transfer) {
    return transfer.channel_value % options.streams_per_pair;
  };
  std::vector<RankProgram> ranks;
  for (std::uint32_t rank = 0; rank < schedule.collective.rank_count; ++rank) {
    auto program = compile(schedule, layout, pacing, Rank(rank), choose_stream);
    if (!program) return tl::unexpected(program.error());
    ranks.push_back(std::move(*program));
  }
  return DeviceCompiler(schedule, ranks, options).run();
}

Result<void> check_co_residency(std::size_t ranks, std::size_t blocks, const ResidencyLimit& limit) {
  const std::uint64_t room = std::uint64_t{limit.multiprocessors} * limit.blocks_per_multiprocessor;
  if (blocks <= room) return {};
  return fail(
      ErrorCode::too_large,
      fmt::format("{} ranks need {} thread blocks at a time, and the GPU runs {} ({} multiprocessors, {} blocks each)",
                  ranks, blocks, room, limit.multiprocessors, limit.blocks_per_multiprocessor),
      "give each rank fewer blocks, or the GPU fewer ranks");
}

Result<void> check_co_residency(const DeviceProgram& program, const ResidencyLimit& limit) {
  return check_co_residency(program.memories.size(), program.blocks.size(), limit);
}

}  // namespace espalier::engine::cuda
