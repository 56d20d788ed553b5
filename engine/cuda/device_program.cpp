#include "engine/cuda/device_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace espalier::engine::cuda {
namespace {

/// An op at its destination, with its place in the order that all ranks share.
struct IncomingOp {
  std::uint32_t stream = 0;
  std::uint32_t index = 0;  ///< Within its stream.
  std::uint32_t level = 0;
  SliceId first_slice;
  std::uint32_t slice_count = 0;
  std::uint32_t chunk = 0;
  TransferId transfer;
};

bool comes_before(const IncomingOp& a, const IncomingOp& b) {
  return std::tie(a.level, a.first_slice, a.slice_count, a.chunk, a.transfer) <
         std::tie(b.level, b.first_slice, b.slice_count, b.chunk, b.transfer);
}

class DeviceCompiler {
 public:
  DeviceCompiler(const Schedule& schedule, std::vector<RankProgram> ranks, const BlockOptions& options)
      : schedule_(schedule),
        ranks_(std::move(ranks)),
        parts_(std::min(options.blocks_per_stream, options.blocks_per_rank)),
        teams_(options.blocks_per_rank / parts_) {}

  DeviceProgram run() {
    number_counters();
    program_.reduces = reduces(schedule_.collective.kind);
    program_.element_size = ranks_.front().element_size;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      program_.memories.push_back({ranks_[rank].send_bytes, ranks_[rank].receive_bytes, ranks_[rank].scratch_bytes,
                                   ranks_[rank].in_place_shift});
      add_rank(Rank(rank));
    }
    return std::move(program_);
  }

 private:
  using StreamKey = std::tuple<Rank, Rank, std::uint32_t>;  // Source, destination, number.

  static StreamKey key_of(Rank rank, const Stream& stream) {
    return stream.is_outgoing ? StreamKey{rank, stream.peer, stream.number}
                              : StreamKey{stream.peer, rank, stream.number};
  }

  /// First a counter per rank, which says that it entered; then one for each part of each stream.
  void number_counters() {
    program_.counter_count = static_cast<std::uint32_t>(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint32_t i = 0; i < ranks_[rank].streams.size(); ++i) {
        const Stream& stream = ranks_[rank].streams[i];
        const StreamKey key = key_of(Rank(rank), stream);
        if (counters_.try_emplace(key, program_.counter_count).second) program_.counter_count += parts_;
        if (stream.is_outgoing) outgoing_.emplace(key, i);
      }
    }
  }

  void add_rank(Rank rank) {
    const RankProgram& own = ranks_[rank.index()];
    std::vector<std::vector<IncomingOp>> by_team(1);  // A team is the blocks that share streams.
    std::uint32_t incoming = 0;
    for (std::uint32_t stream = 0; stream < own.streams.size(); ++stream) {
      if (own.streams[stream].is_outgoing) continue;
      const std::uint32_t team = incoming++ % teams_;
      if (team >= by_team.size()) by_team.emplace_back();
      add_incoming(own, stream, by_team[team]);
    }
    for (std::size_t team = 0; team < by_team.size(); ++team) {
      std::ranges::sort(by_team[team], comes_before);
      const std::uint32_t parts = incoming == 0 ? 1 : parts_;
      for (std::uint32_t part = 0; part < parts; ++part) {
        const bool is_first = team == 0 && part == 0;
        const auto first_step = static_cast<std::uint32_t>(program_.steps.size());
        if (is_first) add_begin(rank);
        for (const IncomingOp& op : by_team[team]) add_op(rank, op, part);
        if (is_first) add_finish(rank);
        program_.blocks.push_back({rank, first_step, static_cast<std::uint32_t>(program_.steps.size()) - first_step});
      }
    }
  }

  void add_incoming(const RankProgram& own, std::uint32_t stream, std::vector<IncomingOp>& ops) const {
    for (std::uint32_t i = 0; i < own.streams[stream].op_count; ++i) {
      const Op& op = own.ops[own.streams[stream].first_op + i];
      const Transfer& moved = schedule_.transfers[op.transfer.index()];
      ops.push_back({stream, i, op.level, moved.first_slice, moved.slice_count, op.chunk, op.transfer});
    }
  }

  Step& begin_step(StepKind kind, Rank peer) {
    Step& step = program_.steps.emplace_back();
    step.kind = kind;
    step.peer = peer;
    step.first_piece = static_cast<std::uint32_t>(program_.pieces.size());
    step.first_wait = static_cast<std::uint32_t>(program_.waits.size());
    return step;
  }

  void end_step(Step& step) {
    step.piece_count = static_cast<std::uint32_t>(program_.pieces.size()) - step.first_piece;
    step.wait_count = static_cast<std::uint32_t>(program_.waits.size()) - step.first_wait;
  }

  void add_begin(Rank rank) {
    begin_step(StepKind::enter, rank).signal = rank.value();
    const RankProgram& own = ranks_[rank.index()];
    if (own.local_copies.empty()) return;
    Step& step = begin_step(StepKind::copy, rank);
    for (const LocalCopy& copy : own.local_copies)
      program_.pieces.push_back({copy.length, copy.from, copy.to, copy.to});
    end_step(step);
  }

  /// A part of a piece: whole elements, cut where 16-byte accesses begin if the piece does.
  void add_part(const Piece& piece, std::uint32_t part) {
    const std::int64_t element = program_.element_size;
    const std::int64_t step = std::max<std::int64_t>(element, 16);
    const auto cut = [&](std::uint32_t at) {
      return at == parts_ ? piece.length : piece.length / step * at / parts_ * step;
    };
    const std::int64_t begin = cut(part);
    if (begin == cut(part + 1)) return;
    const auto moved = [begin](const Location& location) { return Location{location.place, location.offset + begin}; };
    program_.pieces.push_back({cut(part + 1) - begin, moved(piece.source), moved(piece.target), moved(piece.first)});
  }

  /// Waits for all parts of a stream.
  void wait_for(const StreamKey& key, std::uint32_t count) {
    for (std::uint32_t part = 0; part < parts_; ++part) program_.waits.push_back({counters_.at(key) + part, count});
  }

  void add_op(Rank rank, const IncomingOp& place, std::uint32_t part) {
    const RankProgram& own = ranks_[rank.index()];
    const Stream& stream = own.streams[place.stream];
    const Op& op = own.ops[stream.first_op + place.index];
    const StreamKey key = key_of(rank, stream);
    Step& step = begin_step(op.reduces ? StepKind::reduce : StepKind::copy, stream.peer);
    step.signal = counters_.at(key) + part;
    step.transfer = op.transfer;
    step.chunk = op.chunk;
    for (std::uint32_t i = 0; i < op.piece_count; ++i) add_part(own.pieces[op.first_piece + i], part);

    if (place.index == 0) program_.waits.push_back({stream.peer.value(), 1});
    add_waits(rank, op);
    if (op.fused != not_fused) wait_for_member_before(rank, op.fused, place);
    const RankProgram& source = ranks_[stream.peer.index()];
    const Stream& outgoing = source.streams[outgoing_.at(key)];
    const Op& sent = source.ops[outgoing.first_op + place.index];
    ESPALIER_CHECK(sent.transfer == op.transfer && sent.chunk == op.chunk, "both ends order a stream alike");
    add_waits(stream.peer, sent);
    end_step(step);
  }

  void add_waits(Rank at, const Op& op) {
    const RankProgram& program = ranks_[at.index()];
    for (std::uint32_t i = 0; i < op.wait_count; ++i) {
      const LocalWait& wait = program.waits[op.first_wait + i];
      wait_for(key_of(at, program.streams[wait.stream]), wait.count);
    }
  }

  /// Reductions that the engine fuses are carried out one after the other here, in program order.
  void wait_for_member_before(Rank rank, std::uint32_t fused, const IncomingOp& place) {
    const RankProgram& own = ranks_[rank.index()];
    const FusedReduction& reduction = own.fused_reductions[fused];
    for (std::uint32_t i = 1; i < reduction.member_count; ++i) {
      const OpPlace& member = own.members[reduction.first_member + i];
      if (member.stream != place.stream || member.index != place.index) continue;
      const OpPlace& before = own.members[reduction.first_member + i - 1];
      wait_for(key_of(rank, own.streams[before.stream]), before.index + 1);
    }
  }

  void add_finish(Rank rank) {
    Step& step = begin_step(StepKind::finish, rank);
    for (const Stream& stream : ranks_[rank.index()].streams) {
      wait_for(key_of(rank, stream), stream.op_count);
    }
    end_step(step);
  }

  const Schedule& schedule_;
  std::vector<RankProgram> ranks_;
  std::uint32_t parts_;                          ///< Of every stream.
  std::uint32_t teams_;                          ///< Blocks of a rank by parts.
  std::map<StreamKey, std::uint32_t> counters_;  ///< Of the first part.
  std::map<StreamKey, std::uint32_t> outgoing_;  ///< The stream's index at its source.
  DeviceProgram program_;
};

}  // namespace

Result<DeviceProgram> compile_for_device(const Schedule& schedule, const Layout& layout, const Cut& cut,
                                         const BlockOptions& options) {
  const auto choose_stream = [&](const Transfer& transfer) {
    return transfer.channel_value % options.streams_per_pair;
  };
  std::vector<RankProgram> ranks;
  for (std::uint32_t rank = 0; rank < schedule.collective.rank_count; ++rank) {
    auto program = compile(schedule, layout, cut, Rank(rank), choose_stream);
    if (!program) return tl::unexpected(program.error());
    ranks.push_back(std::move(*program));
  }
  return DeviceCompiler(schedule, std::move(ranks), options).run();
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
