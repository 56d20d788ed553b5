#include "engine/cuda/local_order.h"

#include <algorithm>
#include <array>
#include <optional>

namespace espalier::engine::cuda {
namespace {

struct Access {
  std::uint32_t move = 0;
  std::size_t memory = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_write = false;
};

/// Bytes between two neighbouring ends of accesses: who wrote them last, and who read them since.
struct AccessedBytes {
  std::optional<std::uint32_t> writer;
  std::vector<std::uint32_t> readers;
};

class LocalOrder {
 public:
  LocalOrder(const MovePlan& plan, const RankProgram& rank) : plan_(plan), rank_(rank) {}

  /// Of the rank's moves, in the shared order.
  void add(std::uint32_t id) {
    const Move& move = plan_.move(id);
    const LaneKind kind = plan_.lanes()[move.lane].kind;
    const Op& op = plan_.op_at(move, kind == LaneKind::send);
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const Piece& piece = rank_.pieces[op.first_piece + i];
      if (kind == LaneKind::send) touch(id, piece.source, piece.length, false);
      if (kind == LaneKind::receive && op.reduces) touch(id, piece.first, piece.length, false);
      if (kind == LaneKind::receive) touch(id, piece.target, piece.length, true);
    }
  }

  void find(std::vector<std::vector<std::uint32_t>>& before) {
    std::array<std::vector<AccessedBytes>, 3> bytes;
    for (std::size_t memory = 0; memory < cuts_.size(); ++memory) {
      std::ranges::sort(cuts_[memory]);
      const auto rest = std::ranges::unique(cuts_[memory]);
      cuts_[memory].erase(rest.begin(), rest.end());
      bytes[memory].resize(cuts_[memory].size());
    }
    for (const Access& access : accesses_) {
      const std::vector<std::int64_t>& cuts = cuts_[access.memory];
      auto at = static_cast<std::size_t>(std::ranges::lower_bound(cuts, access.begin) - cuts.begin());
      for (; cuts[at] < access.end; ++at) take(access, bytes[access.memory][at], before[access.move]);
    }
  }

 private:
  void touch(std::uint32_t id, const Location& location, std::int64_t length, bool is_write) {
    const bool is_shared = location.place == Place::send && rank_.in_place_shift.has_value() && !rank_.keeps_input;
    const std::size_t memory = static_cast<std::size_t>(is_shared ? Place::receive : location.place);
    const std::int64_t begin = location.offset + (is_shared ? *rank_.in_place_shift : 0);
    accesses_.push_back({id, memory, begin, begin + length, is_write});
    cuts_[memory].push_back(begin);
    cuts_[memory].push_back(begin + length);
  }

  static void take(const Access& access, AccessedBytes& bytes, std::vector<std::uint32_t>& before) {
    const auto wait_for = [&](std::uint32_t move) {
      if (move != access.move && std::ranges::find(before, move) == before.end()) before.push_back(move);
    };
    if (bytes.writer) wait_for(*bytes.writer);
    if (!access.is_write) return bytes.readers.push_back(access.move);
    for (const std::uint32_t reader : bytes.readers) wait_for(reader);
    bytes.readers.clear();
    bytes.writer = access.move;
  }

  const MovePlan& plan_;
  const RankProgram& rank_;
  std::vector<Access> accesses_;
  std::array<std::vector<std::int64_t>, 3> cuts_;  ///< By memory.
};

}  // namespace

std::vector<std::vector<std::uint32_t>> find_local_order(const MovePlan& plan, const std::vector<RankProgram>& ranks) {
  std::vector<std::vector<std::uint32_t>> before(plan.move_count());
  std::vector<std::vector<std::uint32_t>> moves(ranks.size());
  for (const Team& team : plan.teams()) {
    std::vector<std::uint32_t>& of = moves[team.rank.index()];
    of.insert(of.end(), team.moves.begin(), team.moves.end());
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::ranges::sort(moves[rank],
                      [&](std::uint32_t a, std::uint32_t b) { return plan.move(a).order < plan.move(b).order; });
    LocalOrder order(plan, ranks[rank]);
    for (const std::uint32_t move : moves[rank]) order.add(move);
    order.find(before);
  }
  return before;
}

}  // namespace espalier::engine::cuda
