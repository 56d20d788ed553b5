#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "base/id.h"

namespace espalier::sim {

/// A time that is not known yet; later than any other.
inline constexpr std::int64_t unknown_time = std::numeric_limits<std::int64_t>::max();

/// When a chunk's last byte left the source and when it was there at the destination, each `unknown_time` at first.
struct ChunkTimes {
  std::int64_t departed = unknown_time;
  std::int64_t arrived = unknown_time;
};

/// When the chunks of each transfer departed and arrived, as far as it is known.
///
/// Times are known ahead: as soon as a link has taken a chunk, it is certain when the chunk leaves it. What lies wholly
/// in the past is forgotten, so memory goes with the chunks under way and not with all. Chunks of one index of
/// neighbouring transfers lie together in a page, as pipelines pass them on at about the same time: what is looked up
/// was written not long ago.
class Progress {
 public:
  /// Forgets everything, for transfers with so many chunks each, at least one; keeps its memory.
  void reset(std::vector<std::uint32_t> chunk_counts);

  /// What arrived before this time may be forgotten; it never goes back.
  void set_past(std::int64_t time) { past_ = time; }

  /// A chunk departs. Requires: once a chunk.
  void depart(TransferId transfer, std::uint32_t chunk, std::int64_t time) {
    std::uint32_t& page = page_of(transfer, chunk);
    if (page == not_started) page = take_page(transfer, chunk);
    at(page, transfer).departed = time;
  }

  /// A chunk arrives. Requires: that it has departed; once a chunk.
  void arrive(TransferId transfer, std::uint32_t chunk, std::int64_t time) {
    const std::uint32_t page = page_of(transfer, chunk);
    at(page, transfer).arrived = time;
    Page& state = pages_[page];
    if (time > state.latest) state.latest = time;
    if (--state.open == 0) finished_.push_back({state.latest, &page_of(transfer, chunk)});
  }

  /// The times of a chunk of any transfer: unknown for what has not started; a time in the past may come out as 0.
  [[nodiscard]] ChunkTimes look_up(TransferId transfer, std::uint32_t chunk) const {
    const std::uint32_t page = page_by_chunk_[first_page_[transfer.index() / page_size] + chunk];
    if (page == not_started) return {};
    if (page == forgotten) return {0, 0};
    return arena_[std::size_t{page} * page_size + transfer.index() % page_size];
  }

 private:
  static constexpr std::size_t page_size = 64;
  static constexpr std::uint32_t not_started = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t forgotten = not_started - 1;

  /// The chunks of one index of `page_size` neighbouring transfers.
  struct Page {
    std::int64_t latest = 0;  ///< Arrival.
    std::uint32_t open = 0;   ///< Chunks that have not arrived.
  };
  struct Finished {
    std::int64_t time;
    std::uint32_t* page;  // where it is named
  };

  [[nodiscard]] std::uint32_t& page_of(TransferId transfer, std::uint32_t chunk) {
    return page_by_chunk_[first_page_[transfer.index() / page_size] + chunk];
  }
  [[nodiscard]] ChunkTimes& at(std::uint32_t page, TransferId transfer) {
    return arena_[std::size_t{page} * page_size + transfer.index() % page_size];
  }
  std::uint32_t take_page(TransferId transfer, std::uint32_t chunk);

  std::vector<std::uint32_t> chunk_counts_;
  std::vector<std::size_t> first_page_;       // by group of `page_size` transfers: where its pages are named
  std::vector<std::uint32_t> page_by_chunk_;  // by group and chunk
  std::vector<Page> pages_;
  std::vector<ChunkTimes> arena_;
  std::vector<std::uint32_t> free_pages_;
  std::deque<Finished> finished_;
  std::int64_t past_ = 0;
};

}  // namespace espalier::sim
