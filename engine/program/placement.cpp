#include "engine/program/placement.h"

#include <algorithm>
#include <unordered_map>

namespace espalier::engine {
namespace {

/// Where the slices of one layout lie in the buffers of a rank.
class BufferMap {
 public:
  BufferMap(const Schedule& schedule, const Layout& layout) : schedule_(schedule), layout_(layout) {
    const std::size_t slices = schedule.slices.size();
    const Collective& collective = schedule.collective;
    if (has_shards(collective.kind)) {
      shard_begin_.assign(collective.rank_count, INT64_MAX);
      shard_end_.assign(collective.rank_count, 0);
      for (std::size_t i = 0; i < slices; ++i) {
        const std::size_t rank = schedule.slices[i].rank.index();
        const ByteRange range = layout.range(SliceId(i), 1);
        shard_begin_[rank] = std::min(shard_begin_[rank], range.begin);
        shard_end_[rank] = std::max(shard_end_[rank], range.end);
      }
    }
    if (collective.kind == CollectiveKind::all_to_all) find_blocks();
  }

  [[nodiscard]] bool brings(Rank rank, std::size_t slice) const {
    const Rank bringer = bringer_of(schedule_.collective, schedule_.slices[slice].ranks());
    return bringer.is_none() || bringer == rank;
  }
  [[nodiscard]] bool is_promised(Rank rank, std::size_t slice) const {
    const Rank receiver = receiver_of(schedule_.collective, schedule_.slices[slice].ranks());
    return receiver.is_none() || receiver == rank;
  }

  /// Requires: the rank brings the slice.
  [[nodiscard]] std::int64_t send_offset(std::size_t slice) const {
    const Slice& part = schedule_.slices[slice];
    const std::int64_t begin = layout_.range(SliceId(slice), 1).begin;
    switch (schedule_.collective.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::gather: return begin - shard_begin_[part.rank.index()];
      case CollectiveKind::all_to_all: return begin - row_begin_[part.rank.index()];
      case CollectiveKind::send_recv: return begin - part.rank.value() * layout_.size().count;
      default: return begin;
    }
  }

  /// Requires: the rank is promised the slice.
  [[nodiscard]] std::int64_t receive_offset(std::size_t slice) const {
    const Slice& part = schedule_.slices[slice];
    const std::int64_t begin = layout_.range(SliceId(slice), 1).begin;
    switch (schedule_.collective.kind) {
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter: return begin - shard_begin_[part.rank.index()];
      case CollectiveKind::send_recv: return begin - part.rank.value() * layout_.size().count;
      case CollectiveKind::all_to_all: return begin - block_shift_[block(part)];
      default: return begin;
    }
  }

  [[nodiscard]] std::int64_t send_bytes(Rank rank) const {
    const Collective& collective = schedule_.collective;
    switch (collective.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::gather: return shard_bytes(rank);
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter: return collective.root == rank ? layout_.size().count : 0;
      case CollectiveKind::all_to_all:
        return collective.has_matrix() ? sent_blocks_[rank.index()] : layout_.size().count;
      default: return layout_.size().count;
    }
  }
  [[nodiscard]] std::int64_t receive_bytes(Rank rank) const {
    const Collective& collective = schedule_.collective;
    switch (collective.kind) {
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter: return shard_bytes(rank);
      case CollectiveKind::reduce:
      case CollectiveKind::gather: return collective.root == rank ? layout_.size().count : 0;
      case CollectiveKind::all_to_all: return received_blocks_[rank.index()];
      default: return layout_.size().count;
    }
  }

  [[nodiscard]] std::optional<std::int64_t> in_place_shift(Rank rank) const {
    switch (schedule_.collective.kind) {
      case CollectiveKind::all_to_all:
      case CollectiveKind::send_recv: return std::nullopt;
      case CollectiveKind::all_gather:
      case CollectiveKind::gather: return shard_begin(rank);
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::scatter: return -shard_begin(rank);
      default: return 0;
    }
  }

 private:
  [[nodiscard]] std::int64_t shard_begin(Rank rank) const {
    return shard_bytes(rank) == 0 ? 0 : shard_begin_[rank.index()];
  }
  [[nodiscard]] std::int64_t shard_bytes(Rank rank) const {
    return std::max<std::int64_t>(0, shard_end_[rank.index()] - shard_begin_[rank.index()]);
  }
  [[nodiscard]] std::size_t block(const Slice& part) const {
    return part.rank.index() * schedule_.collective.rank_count + part.to.index();
  }

  /// Send buffers of all_to_all hold the blocks to rank 0, 1, ... one after the other, receive buffers those from them.
  void find_blocks() {
    const std::uint32_t ranks = schedule_.collective.rank_count;
    std::vector<std::int64_t> begin(std::size_t{ranks} * ranks, INT64_MAX);
    std::vector<std::int64_t> end(begin.size(), 0);
    for (std::size_t i = 0; i < schedule_.slices.size(); ++i) {
      const std::size_t at = block(schedule_.slices[i]);
      const ByteRange range = layout_.range(SliceId(i), 1);
      begin[at] = std::min(begin[at], range.begin);
      end[at] = std::max(end[at], range.end);
    }
    block_shift_.assign(begin.size(), 0);
    received_blocks_.assign(ranks, 0);
    sent_blocks_.assign(ranks, 0);
    row_begin_.assign(ranks, INT64_MAX);
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t to = 0; to < ranks; ++to) {
        const std::size_t at = from * ranks + to;
        if (end[at] == 0 && begin[at] == INT64_MAX) continue;
        block_shift_[at] = begin[at] - received_blocks_[to];
        received_blocks_[to] += end[at] - begin[at];
        sent_blocks_[from] += end[at] - begin[at];
        row_begin_[from] = std::min(row_begin_[from], begin[at]);
      }
    }
  }

  const Schedule& schedule_;
  const Layout& layout_;
  std::vector<std::int64_t> shard_begin_;
  std::vector<std::int64_t> shard_end_;
  std::vector<std::int64_t> block_shift_;
  std::vector<std::int64_t> received_blocks_;
  std::vector<std::int64_t> sent_blocks_;
  std::vector<std::int64_t> row_begin_;  ///< Where the blocks of a sender begin.
};

}  // namespace

Placement::Placement(const Schedule& schedule, const Layout& layout) {
  const BufferMap map(schedule, layout);
  const std::size_t slices = schedule.slices.size();
  const std::uint32_t ranks = schedule.collective.rank_count;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    send_bytes_.push_back(map.send_bytes(Rank(rank)));
    receive_bytes_.push_back(map.receive_bytes(Rank(rank)));
    in_place_shifts_.push_back(map.in_place_shift(Rank(rank)));
  }
  scratch_bytes_.assign(ranks, 0);
  std::vector<bool> is_written(std::size_t{ranks} * slices);
  std::unordered_map<std::uint64_t, std::int64_t> scratch_offset;

  const auto written_location = [&](Rank rank, std::size_t slice) -> Location {
    if (map.is_promised(rank, slice)) return {Place::receive, map.receive_offset(slice)};
    const auto [entry, is_new] =
        scratch_offset.try_emplace(rank.index() * slices + slice, scratch_bytes_[rank.index()]);
    if (is_new) {
      constexpr std::int64_t cache_line = 64;
      const std::int64_t length = layout.range(SliceId(slice), 1).length();
      scratch_bytes_[rank.index()] += (length + cache_line - 1) / cache_line * cache_line;
    }
    return {Place::scratch, entry->second};
  };

  first_move_.reserve(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers) {
    first_move_.push_back(moves_.size());
    const Rank src = schedule.src(transfer);
    const Rank dst = schedule.dst(transfer);
    for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
      const std::size_t slice = transfer.first_slice.index() + i;
      SliceMove move;
      const bool is_changed = transfer.reads_input == 0 && is_written[src.index() * slices + slice];
      move.source = is_changed ? written_location(src, slice) : Location{Place::send, map.send_offset(slice)};
      move.target = written_location(dst, slice);
      const bool adds_to_own = !is_written[dst.index() * slices + slice] && transfer.reduces != 0;
      move.first = adds_to_own ? Location{Place::send, map.send_offset(slice)} : move.target;
      moves_.push_back(move);
      is_written[dst.index() * slices + slice] = true;
    }
  }
  first_move_.push_back(moves_.size());

  for (std::size_t slice = 0; slice < slices; ++slice) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (is_written[rank * slices + slice] || !map.is_promised(Rank(rank), slice)) continue;
      own_results_.push_back({Rank(rank),
                              {Place::send, map.send_offset(slice)},
                              {Place::receive, map.receive_offset(slice)},
                              layout.range(SliceId(slice), 1).length()});
    }
  }
}

}  // namespace espalier::engine
