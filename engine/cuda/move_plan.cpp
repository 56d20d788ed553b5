#include "engine/cuda/move_plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::uint32_t no_move = std::numeric_limits<std::uint32_t>::max();

}  // namespace

MovePlan::MovePlan(const Schedule& schedule, const std::vector<RankProgram>& ranks, const BlockOptions& options)
    : schedule_(schedule),
      ranks_(ranks),
      options_(options),
      parts_(options.low_latency ? 1 : std::min(options.blocks_per_stream, options.blocks_per_rank)),
      teams_per_rank_(options.blocks_per_rank / parts_) {
  lane_of_.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) add_lanes(Rank(rank));
  find_peer_streams();
  if (options.forwards) attach_all();
  number_counters();
}

void MovePlan::add_lanes(Rank rank) {
  const RankProgram& own = program(rank);
  const auto first_team = static_cast<std::uint32_t>(teams_.size());
  teams_.push_back({rank});
  lane_of_[rank.index()].resize(own.streams.size());
  std::uint32_t dealt = 0;
  for (const bool by_host : {false, true}) {
    for (std::uint32_t stream = 0; stream < own.streams.size(); ++stream) {
      const Stream& of = own.streams[stream];
      if (of.is_outgoing && !options_.low_latency) continue;  // The destination's lane is this end's, too.
      if (is_by_host(rank, of.peer) != by_host) continue;
      const auto team = by_host ? static_cast<std::uint32_t>(teams_.size()) : first_team + dealt++ % teams_per_rank_;
      if (team >= teams_.size()) teams_.push_back({rank, {}, by_host});
      add_lane(rank, stream, team);
    }
  }
}

void MovePlan::add_lane(Rank rank, std::uint32_t stream, std::uint32_t team) {
  const RankProgram& own = program(rank);
  const Stream& of = own.streams[stream];
  const LaneKind kind = !options_.low_latency ? LaneKind::pull : of.is_outgoing ? LaneKind::send : LaneKind::receive;
  lane_of_[rank.index()][stream] = static_cast<std::uint32_t>(lanes_.size());
  Lane& lane = lanes_.emplace_back();
  lane.kind = kind;
  lane.rank = rank;
  lane.stream = stream;
  lane.peer = of.peer;
  lane.first_move = static_cast<std::uint32_t>(moves_.size());
  lane.op_count = of.op_count;
  lane.team = team;
  lane.by_host = teams_[team].by_host;
  for (std::uint32_t i = 0; i < of.op_count; ++i) {
    const Op& op = own.ops[of.first_op + i];
    const Transfer& moved = schedule_.transfers[op.transfer.index()];
    Move& move = moves_.emplace_back();
    move.lane = static_cast<std::uint32_t>(lanes_.size() - 1);
    move.index = i;
    move.order = {op.level, moved.first_slice, moved.slice_count, op.chunk, op.transfer, kind == LaneKind::receive};
    move.by = static_cast<std::uint32_t>(moves_.size() - 1);
  }
}

void MovePlan::find_peer_streams() {
  using StreamKey = std::tuple<Rank, Rank, std::uint32_t>;  // Source, destination, number.
  std::map<StreamKey, std::uint32_t> outgoing;
  std::map<StreamKey, std::uint32_t> incoming;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::uint32_t i = 0; i < ranks_[rank].streams.size(); ++i) {
      const Stream& stream = ranks_[rank].streams[i];
      if (stream.is_outgoing) {
        outgoing[{Rank(rank), stream.peer, stream.number}] = i;
      } else {
        incoming[{stream.peer, Rank(rank), stream.number}] = i;
      }
    }
  }
  for (std::uint32_t id = 0; id < lanes_.size(); ++id) {
    Lane& lane = lanes_[id];
    const std::uint32_t number = program(lane.rank).streams[lane.stream].number;
    lane.peer_stream = lane.kind == LaneKind::send ? incoming.at({lane.rank, lane.peer, number})
                                                   : outgoing.at({lane.peer, lane.rank, number});
    if (lane.kind == LaneKind::pull) lane_of_[lane.peer.index()][lane.peer_stream] = id;
  }
}

const Op& MovePlan::op_at(const Move& move, bool at_source) const {
  const Lane& lane = lanes_[move.lane];
  const bool is_own = (lane.kind == LaneKind::send) == at_source;
  const RankProgram& at = program(is_own ? lane.rank : lane.peer);
  return at.ops[at.streams[is_own ? lane.stream : lane.peer_stream].first_op + move.index];
}

/// In the shared order, so that it is known of every move whether it is attached when others ask.
void MovePlan::attach_all() {
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t id = 0; id < moves_.size(); ++id) {
    if (lanes_[moves_[id].lane].by_host) continue;
    const LaneKind kind = lanes_[moves_[id].lane].kind;
    // Who adds something reads its own memory: that is not written from afar.
    if (kind == LaneKind::send || (kind == LaneKind::pull && !op_at(moves_[id], false).reduces))
      candidates.push_back(id);
  }
  std::ranges::sort(candidates, [&](std::uint32_t a, std::uint32_t b) { return moves_[a].order < moves_[b].order; });
  for (const std::uint32_t id : candidates) {
    const std::uint32_t producer = find_producer(moves_[id]);
    if (producer == no_move || !has_same_bytes(moves_[producer], moves_[id])) continue;
    if (!waits_before(moves_[id], moves_[producer])) continue;
    moves_[id].is_attached = true;
    moves_[id].by = producer;
    moves_[producer].attached.push_back(id);
  }
}

/// The last of the moves that bring something to the source and that the forward waits for; none where that is attached
/// itself, or the hosts'.
std::uint32_t MovePlan::find_producer(const Move& forward) const {
  const RankProgram& source = program(source_of(lanes_[forward.lane]));
  const Rank rank = source_of(lanes_[forward.lane]);
  const Op& op = op_at(forward, true);
  std::uint32_t found = no_move;
  for (std::uint32_t i = 0; i < op.wait_count; ++i) {
    const LocalWait& wait = source.waits[op.first_wait + i];
    if (source.streams[wait.stream].is_outgoing) continue;
    const std::uint32_t id = lane_at(rank, wait.stream).first_move + wait.count - 1;
    if (found == no_move || moves_[found].order < moves_[id].order) found = id;
  }
  const bool is_step = found != no_move && !moves_[found].is_attached && !lanes_[moves_[found].lane].by_host;
  return is_step ? found : no_move;
}

bool MovePlan::has_same_bytes(const Move& producer, const Move& forward) const {
  const Op& made = op_at(producer, false);
  const Op& sent = op_at(forward, true);
  const RankProgram& rank = program(source_of(lanes_[forward.lane]));
  if (made.piece_count != sent.piece_count) return false;
  for (std::uint32_t i = 0; i < made.piece_count; ++i) {
    const Piece& from = rank.pieces[made.first_piece + i];
    const Piece& to = rank.pieces[sent.first_piece + i];
    if (from.length != to.length || from.target != to.source) return false;
  }
  return true;
}

/// Whether all else that the forward waits for comes before the producer, so that waiting for it there is no circle.
bool MovePlan::waits_before(const Move& forward, const Move& producer) {
  Lane& lane = lanes_[forward.lane];
  const auto all_before = [&](Rank rank, const Op& op) {
    const RankProgram& at = program(rank);
    for (std::uint32_t i = 0; i < op.wait_count; ++i) {
      const LocalWait& wait = at.waits[op.first_wait + i];
      const Move& before = moves_[lane_at(rank, wait.stream).first_move + wait.count - 1];
      if (&before != &producer && !(before.order < producer.order)) return false;
    }
    return true;
  };
  if (!all_before(source_of(lane), op_at(forward, true))) return false;
  if (lane.kind == LaneKind::send) return true;  // Mailboxes have a slot for every op.
  for (; lane.placed < forward.index; ++lane.placed) {
    lane.latest = std::max(lane.latest, moves_[moves_[lane.first_move + lane.placed].by].order);
  }
  if (forward.index > 0 && !(lane.latest < producer.order)) return false;
  return all_before(target_of(lane), op_at(forward, false));
}

LaneExecutor& MovePlan::executor_of(Lane& lane, std::uint32_t team) {
  for (LaneExecutor& executor : lane.executors) {
    if (executor.team == team) return executor;
  }
  lane.executors.push_back({team, counter_count_, 0, {}});
  counter_count_ += parts_;
  return lane.executors.back();
}

/// First a counter per rank, which says that it entered; then those of each lane and team.
void MovePlan::number_counters() {
  counter_count_ = static_cast<std::uint32_t>(ranks_.size());
  for (std::uint32_t id = 0; id < moves_.size(); ++id) {
    if (!moves_[id].is_attached) teams_[lanes_[moves_[id].lane].team].moves.push_back(id);
  }
  const auto count = [&](std::uint32_t id, std::uint32_t team) {
    LaneExecutor& executor = executor_of(lanes_[moves_[id].lane], team);
    executor.reached.emplace_back(moves_[id].index, ++executor.count);
  };
  for (std::uint32_t team = 0; team < teams_.size(); ++team) {
    std::ranges::sort(teams_[team].moves,
                      [&](std::uint32_t a, std::uint32_t b) { return moves_[a].order < moves_[b].order; });
    for (const std::uint32_t id : teams_[team].moves) {
      count(id, team);
      for (const std::uint32_t attached : moves_[id].attached) count(attached, team);
    }
  }
  for (Lane& lane : lanes_) {
    for (LaneExecutor& executor : lane.executors) {
      std::ranges::sort(executor.reached);
      std::uint32_t most = 0;
      for (auto& [index, goal] : executor.reached) goal = most = std::max(most, goal);
    }
  }
}

std::uint32_t MovePlan::goal_of(const LaneExecutor& executor, std::uint32_t count) {
  const auto after =
      std::ranges::lower_bound(executor.reached, count, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  return after == executor.reached.begin() ? 0 : std::prev(after)->second;
}

std::uint32_t MovePlan::counter_of(std::uint32_t move) const {
  const std::uint32_t team = team_of(move);
  for (const LaneExecutor& executor : lanes_[moves_[move].lane].executors) {
    if (executor.team == team) return executor.counter;
  }
  ESPALIER_CHECK(false, "every move has its team's counter");
  return 0;
}

}  // namespace espalier::engine::cuda
