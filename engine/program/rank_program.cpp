#include "engine/program/rank_program.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/check.h"
#include "engine/program/order.h"

namespace espalier::engine {
namespace {

/// A chunk of a transfer that has this rank at one end, before it has its place in a stream.
struct Draft {
  TransferId transfer;
  std::uint32_t chunk = 0;
  std::uint32_t level = 0;
  std::uint32_t first_slice = 0;
  std::uint32_t slice_count = 0;
};

/// All members of one fused reduction come before all of another's, so that they never wait for each other in a
/// circle.
bool runs_before(const Draft& a, const Draft& b) {
  return std::tuple(a.level, a.first_slice, a.slice_count, a.chunk, a.transfer) <
         std::tuple(b.level, b.first_slice, b.slice_count, b.chunk, b.transfer);
}

class Compiler {
 public:
  Compiler(const Schedule& schedule, const Layout& layout, const Chunking& chunking, const ChunkOrder& order, Rank rank)
      : schedule_(schedule),
        layout_(layout),
        chunking_(chunking),
        order_(order),
        rank_(rank),
        placement_(schedule, layout) {}

  RankProgram run(const StreamChoice& choose_stream) {
    deal_to_streams(choose_stream);
    for (std::uint32_t stream = 0; stream < program_.streams.size(); ++stream) add_ops(stream);
    for (std::uint32_t stream = 0; stream < program_.streams.size(); ++stream) add_waits(stream);
    for (Stream& stream : program_.streams) stream.initial_credits = count_initial_credits(stream);
    find_fused();
    find_forwards();
    for (const Placement::OwnResult& own : placement_.own_results()) {
      if (own.rank == rank_ && own.length > 0) program_.local_copies.push_back({own.from, own.to, own.length});
    }
    program_.send_bytes = placement_.send_bytes(rank_);
    program_.receive_bytes = placement_.receive_bytes(rank_);
    program_.message_bytes = std::max(program_.send_bytes, program_.receive_bytes);
    program_.scratch_bytes = placement_.scratch_bytes(rank_);
    program_.in_place_shift = placement_.in_place_shift(rank_);
    program_.element_size = layout_.element_size();
    for (const Transfer& transfer : schedule_.transfers) {
      const Pieces pieces = chunking_.pieces(transfer);
      program_.max_op_bytes = std::max(program_.max_op_bytes, chunking_.bytes(pieces, 0));
      program_.keeps_input |= transfer.reads_input != 0 && schedule_.src(transfer) == rank_;
    }
    return std::move(program_);
  }

 private:
  [[nodiscard]] const Transfer& transfer(TransferId id) const { return schedule_.transfers[id.index()]; }

  void deal_to_streams(const StreamChoice& choose_stream) {
    std::map<std::tuple<bool, Rank, std::uint32_t>, std::vector<Draft>> by_stream;  // Incoming ones first.
    stream_of_.assign(schedule_.transfers.size(), UINT32_MAX);
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const Transfer& moved = schedule_.transfers[i];
      const Rank src = schedule_.src(moved);
      const Rank dst = schedule_.dst(moved);
      if (src != rank_ && dst != rank_) continue;
      const bool is_outgoing = src == rank_;
      std::vector<Draft>& drafts = by_stream[{is_outgoing, is_outgoing ? dst : src, choose_stream(moved)}];
      for (std::uint32_t chunk = 0; chunk < order_.chunk_count(TransferId(i)); ++chunk) {
        drafts.push_back(
            {TransferId(i), chunk, order_.level(TransferId(i), chunk), moved.first_slice.value(), moved.slice_count});
      }
    }
    first_position_.assign(schedule_.transfers.size(), 0);
    std::uint64_t positions = 0;
    for (auto& [key, drafts] : by_stream) {
      const auto& [is_outgoing, peer, number] = key;
      std::ranges::sort(drafts, runs_before);
      const auto stream = static_cast<std::uint32_t>(program_.streams.size());
      program_.streams.push_back({peer, number, is_outgoing, 0, static_cast<std::uint32_t>(drafts.size()), 0, false});
      for (const Draft& draft : drafts) {
        if (draft.chunk != 0) continue;
        stream_of_[draft.transfer.index()] = stream;
        first_position_[draft.transfer.index()] = positions;
        positions += order_.chunk_count(draft.transfer);
      }
      drafts_.push_back(std::move(drafts));
    }
    position_.resize(positions);
    for (const std::vector<Draft>& drafts : drafts_) {
      for (std::size_t i = 0; i < drafts.size(); ++i) {
        position_[first_position_[drafts[i].transfer.index()] + drafts[i].chunk] = static_cast<std::uint32_t>(i);
      }
    }
  }

  void add_ops(std::uint32_t stream) {
    program_.streams[stream].first_op = static_cast<std::uint32_t>(program_.ops.size());
    for (const Draft& draft : drafts_[stream]) {
      Op op;
      op.transfer = draft.transfer;
      op.chunk = draft.chunk;
      op.reduces = transfer(draft.transfer).reduces != 0;
      op.first_piece = static_cast<std::uint32_t>(program_.pieces.size());
      op.level = draft.level;
      op.bytes = chunking_.bytes(chunking_.pieces(transfer(draft.transfer)), draft.chunk);
      add_pieces(draft.transfer, draft.chunk, op.first_piece);
      op.piece_count = static_cast<std::uint32_t>(program_.pieces.size()) - op.first_piece;
      program_.ops.push_back(op);
    }
  }

  static bool follows(const Location& a, const Location& b, std::int64_t length) {
    return a.place == b.place && a.offset + length == b.offset;
  }

  void add_pieces(TransferId id, std::uint32_t chunk, std::uint32_t first_piece) {
    const Transfer& moved = transfer(id);
    const SliceMove* moves = placement_.moves(id);
    for (std::uint32_t i = 0; i < moved.slice_count; ++i) {
      const SliceId slice(moved.first_slice.index() + i);
      const ByteRange part = chunking_.part(slice, chunk);
      const std::int64_t length = part.length();
      if (length == 0) continue;
      const std::int64_t skip = part.begin - layout_.range(slice, 1).begin;
      Piece piece{length, moves[i].source, moves[i].target, moves[i].first};
      for (Location* location : {&piece.source, &piece.target, &piece.first}) location->offset += skip;
      if (program_.pieces.size() > first_piece) {
        Piece& last = program_.pieces.back();
        if (follows(last.source, piece.source, last.length) && follows(last.target, piece.target, last.length) &&
            follows(last.first, piece.first, last.length)) {
          last.length += length;
          continue;
        }
      }
      program_.pieces.push_back(piece);
    }
  }

  /// The chunks of other transfers that an op waits for at one of its ends.
  template <typename Visit>
  void for_each_wait(const Op& op, Rank at, Visit visit) const {
    const Transfer& moved = transfer(op.transfer);
    const auto wait_for = [&](TransferId id) {
      const std::uint32_t needed = chunking_.needed_chunk(transfer(id), moved, op.chunk);
      if (needed != no_chunk) visit(id, needed);
    };
    for (const Dependency& wait : order_.waits(op.transfer)) {
      const Transfer& earlier = transfer(wait.transfer());
      const Rank where = wait.wait() == Wait::departure ? schedule_.src(earlier) : schedule_.dst(earlier);
      if (where == at) wait_for(wait.transfer());
    }
    if (schedule_.dst(moved) == at) {
      for (const TransferId earlier : order_.joined(op.transfer)) wait_for(earlier);
    }
  }

  void add_waits(std::uint32_t stream) {
    std::vector<LocalWait> found;
    for (std::uint32_t i = 0; i < program_.streams[stream].op_count; ++i) {
      Op& op = program_.ops[program_.streams[stream].first_op + i];
      found.clear();
      for_each_wait(op, rank_, [&](TransferId id, std::uint32_t chunk) {
        const std::uint32_t other = stream_of_[id.index()];
        ESPALIER_CHECK(other != UINT32_MAX, "an end waits for transfers of its own rank");
        found.push_back({other, position_[first_position_[id.index()] + chunk] + 1});
      });
      op.first_wait = static_cast<std::uint32_t>(program_.waits.size());
      keep_latest(found, stream, i);
      op.wait_count = static_cast<std::uint32_t>(program_.waits.size()) - op.first_wait;
    }
  }

  [[nodiscard]] std::uint32_t count_initial_credits(const Stream& stream) const {
    std::uint32_t count = 0;
    bool waits = false;
    while (count < stream.op_count) {
      const Op& op = program_.ops[stream.first_op + count];
      for_each_wait(op, stream.peer, [&](TransferId, std::uint32_t) { waits = true; });
      if (waits) break;
      ++count;
    }
    return count;
  }

  /// Of several waits for one stream the latest counts; earlier ops of the own stream are done anyway.
  void keep_latest(std::vector<LocalWait>& found, std::uint32_t stream, std::uint32_t index) {
    std::ranges::sort(found, [](const LocalWait& a, const LocalWait& b) {
      return std::tuple(a.stream, b.count) < std::tuple(b.stream, a.count);
    });
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i > 0 && found[i].stream == found[i - 1].stream) continue;
      if (found[i].stream == stream && !program_.streams[stream].is_outgoing && found[i].count <= index) continue;
      program_.waits.push_back(found[i]);
    }
  }

  /// Reductions of one level into the same run and chunk are fused; none of them waits for another then.
  void find_fused() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
    std::map<Key, std::vector<OpPlace>> alike;
    for (std::uint32_t stream = 0; stream < program_.streams.size(); ++stream) {
      if (program_.streams[stream].is_outgoing) continue;
      for (std::uint32_t i = 0; i < program_.streams[stream].op_count; ++i) {
        const Op& op = op_at({stream, i});
        if (!op.reduces) continue;
        const Transfer& moved = transfer(op.transfer);
        const std::uint32_t level = order_.level(op.transfer, op.chunk);
        alike[{level, moved.first_slice.value(), moved.slice_count, op.chunk}].push_back({stream, i});
      }
    }
    for (auto& [key, members] : alike) {
      std::ranges::sort(members,
                        [&](const OpPlace& a, const OpPlace& b) { return op_at(a).transfer < op_at(b).transfer; });
      std::vector<OpPlace> fused;
      for (const OpPlace& member : members) {
        if (!fused.empty() && !joins(fused, member)) {
          add_fused(fused);
          fused.clear();
        }
        fused.push_back(member);
      }
      add_fused(fused);
    }
  }

  /// Whether a reduction comes straight after those of a fused one, on a stream of its own.
  bool joins(const std::vector<OpPlace>& fused, const OpPlace& member) {
    const auto joined = order_.joined(op_at(member).transfer);
    return joined.size() == 1 && joined.front() == op_at(fused.back()).transfer &&
           std::ranges::none_of(fused, [&](const OpPlace& other) { return other.stream == member.stream; });
  }

  void add_fused(const std::vector<OpPlace>& members) {
    const auto fused = static_cast<std::uint32_t>(program_.fused_reductions.size());
    program_.fused_reductions.push_back(
        {static_cast<std::uint32_t>(program_.members.size()), static_cast<std::uint32_t>(members.size()), 0, 0});
    for (const OpPlace& member : members) {
      op_at(member).fused = fused;
      drop_waits_within(member, members);
      program_.members.push_back(member);
    }
  }

  /// Copies that wait for a fused reduction and send just its result; of several that add to it, the last one.
  void find_forwards() {
    std::vector<std::vector<OpPlace>> forwards(program_.fused_reductions.size());
    for (std::uint32_t stream = 0; stream < program_.streams.size(); ++stream) {
      if (!program_.streams[stream].is_outgoing) continue;
      for (std::uint32_t i = 0; i < program_.streams[stream].op_count; ++i) {
        const std::uint32_t fused = pass_before(op_at({stream, i}));
        if (fused != not_fused) forwards[fused].push_back({stream, i});
      }
    }
    for (std::size_t fused = 0; fused < forwards.size(); ++fused) {
      program_.fused_reductions[fused].first_forward = static_cast<std::uint32_t>(program_.forwards.size());
      program_.fused_reductions[fused].forward_count = static_cast<std::uint32_t>(forwards[fused].size());
      program_.forwards.insert(program_.forwards.end(), forwards[fused].begin(), forwards[fused].end());
    }
  }

  /// The fused reduction whose result a copy sends, and nothing else; `not_fused` for other ops.
  std::uint32_t pass_before(const Op& op) {
    if (op.reduces) return not_fused;
    std::uint32_t found = not_fused;
    std::uint32_t highest = 0;
    for (std::uint32_t i = 0; i < op.wait_count; ++i) {
      const LocalWait& wait = program_.waits[op.first_wait + i];
      if (program_.streams[wait.stream].is_outgoing) continue;
      const Op& before = op_at({wait.stream, wait.count - 1});
      if (before.fused == not_fused || before.chunk != op.chunk) continue;
      const Transfer& reduction = transfer(before.transfer);
      const Transfer& copy = transfer(op.transfer);
      if (reduction.first_slice != copy.first_slice || reduction.slice_count != copy.slice_count) continue;
      const std::uint32_t level = order_.level(before.transfer, before.chunk);
      if (found != not_fused && level < highest) continue;
      highest = level;
      found = before.fused;
    }
    return found;
  }

  Op& op_at(const OpPlace& place) { return program_.ops[program_.streams[place.stream].first_op + place.index]; }

  void drop_waits_within(const OpPlace& member, const std::vector<OpPlace>& members) {
    Op& op = op_at(member);
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < op.wait_count; ++i) {
      const LocalWait wait = program_.waits[op.first_wait + i];
      const bool is_within = std::ranges::any_of(
          members, [&](const OpPlace& other) { return other.stream == wait.stream && other.index + 1 == wait.count; });
      if (!is_within) program_.waits[op.first_wait + kept++] = wait;
    }
    op.wait_count = kept;
  }

  const Schedule& schedule_;
  const Layout& layout_;
  const Chunking& chunking_;
  const ChunkOrder& order_;
  Rank rank_;
  Placement placement_;
  RankProgram program_;
  std::vector<std::vector<Draft>> drafts_;     ///< By stream.
  std::vector<std::uint32_t> stream_of_;       ///< By transfer; UINT32_MAX for those of other ranks.
  std::vector<std::uint64_t> first_position_;  ///< By transfer, into `position_`.
  std::vector<std::uint32_t> position_;        ///< Of each chunk in its stream.
};

/// Finds the outgoing streams that share a link with transfers between other ranks or on other channels.
void keep_step(RankProgram& program, const Schedule& schedule, std::uint32_t ahead) {
  using Lane = std::tuple<Rank, Rank, ChannelId>;
  const auto lane_of = [&](const Transfer& transfer) {
    return Lane{schedule.src(transfer), schedule.dst(transfer), transfer.channel()};
  };
  std::map<LinkId, Lane> first_user;
  std::set<LinkId> shared;
  for (const Transfer& transfer : schedule.transfers) {
    for (const LinkId link : schedule.route(transfer.route).links) {
      if (first_user.try_emplace(link, lane_of(transfer)).first->second != lane_of(transfer)) shared.insert(link);
    }
  }
  std::uint32_t kept = 0;
  for (Stream& stream : program.streams) {
    if (!stream.is_outgoing) continue;
    stream.keeps_step =
        std::ranges::any_of(std::span(program.ops).subspan(stream.first_op, stream.op_count), [&](const Op& op) {
          const Route route = schedule.route(schedule.transfers[op.transfer.index()].route);
          return std::ranges::any_of(route.links, [&](LinkId link) { return shared.contains(link); });
        });
    if (stream.keeps_step) ++kept;
  }
  program.ahead = kept > 1 ? ahead : 0;
}

}  // namespace

Result<RankProgram> compile(const Schedule& schedule, const Layout& layout, const Pacing& pacing, Rank rank,
                            const StreamChoice& choose_stream) {
  if (!schedule.relays.empty()) {
    return fail(ErrorCode::unsupported, "the schedule lets switches take part; ranks can only run what ranks do",
                "plan with -a ring, tree or packing");
  }
  const std::int64_t count = chunk_count(schedule, layout, Bytes{std::max(pacing.chunk.count, layout.element_size())});
  const Chunking chunking(layout, count);
  const auto order = ChunkOrder::make(schedule, chunking);
  if (!order) return tl::unexpected(order.error());
  Result<RankProgram> program = Compiler(schedule, layout, chunking, *order, rank).run(choose_stream);
  if (program && pacing.ahead > 0) keep_step(*program, schedule, pacing.ahead);
  return program;
}

}  // namespace espalier::engine
