#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "schedule/layout.h"
#include "sim/simulate.h"

namespace espalier::test {

/// The bytes of a chunk: a part of each slice of its transfer.
struct ChunkBytes {
  std::vector<ByteRange> parts;

  [[nodiscard]] std::int64_t length() const {
    std::int64_t sum = 0;
    for (const ByteRange& part : parts) sum += part.length();
    return sum;
  }
  [[nodiscard]] bool shares_bytes(const ChunkBytes& other) const {
    for (const ByteRange& a : parts) {
      for (const ByteRange& b : other.parts) {
        if (std::max(a.begin, b.begin) < std::min(a.end, b.end)) return true;
      }
    }
    return false;
  }
};

/// Cuts a schedule's transfers as docs/simulator.md, "Chunks", says; calls `visit(transfer, index, bytes)` for each
/// chunk in order.
template <class Visit>
void cut_by_definition(const Schedule& schedule, const sim::Options& options, Visit visit) {
  const auto layout = Layout::make(schedule, options.size, options.element_size);
  ESPALIER_CHECK(layout.has_value(), "a test's layout fits");
  std::int64_t longest = 1;
  for (const Transfer& transfer : schedule.transfers) longest = std::max(longest, layout->range(transfer).length());
  const std::int64_t elements_per_chunk = options.chunk.count / options.element_size;
  const std::int64_t parts =
      std::max<std::int64_t>(1, (longest / options.element_size + elements_per_chunk - 1) / elements_per_chunk);
  for (std::size_t t = 0; t < schedule.transfers.size(); ++t) {
    for (std::int64_t c = 0; c < parts; ++c) {
      ChunkBytes bytes;
      for (std::uint32_t i = 0; i < schedule.transfers[t].slice_count; ++i) {
        const ByteRange slice = layout->range(SliceId(schedule.transfers[t].first_slice.index() + i), 1);
        const std::int64_t elements = slice.length() / options.element_size;
        const std::int64_t longer = elements % parts;  // So many parts have an element more than the others.
        const auto begin = [&](std::int64_t part) {
          return slice.begin + (part * (elements / parts) + std::min(part, longer)) * options.element_size;
        };
        bytes.parts.push_back({begin(c), begin(c + 1)});
      }
      if (c > 0 && bytes.length() == 0) break;
      visit(t, static_cast<std::uint32_t>(c), bytes);
    }
  }
}

/// docs/simulator.md, "Rounds": by transfer, the round of its first chunk. `counts`: how many chunks each has.
inline std::vector<std::uint32_t> rounds_by_definition(const Schedule& schedule,
                                                       const std::vector<std::uint32_t>& counts) {
  const auto shares_slices = [](const Transfer& a, const Transfer& b) {
    return a.first_slice.index() < b.first_slice.index() + b.slice_count &&
           b.first_slice.index() < a.first_slice.index() + a.slice_count;
  };
  std::vector<std::uint32_t> first(counts.size(), 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Transfer& mine = schedule.transfers[i];
    for (std::size_t j = 0; j < i; ++j) {
      const Transfer& theirs = schedule.transfers[j];
      const bool share_lane = mine.channel() == theirs.channel() && schedule.src(mine) == schedule.src(theirs) &&
                              schedule.dst(mine) == schedule.dst(theirs);
      if (share_lane) first[i] = std::max(first[i], first[j] + counts[j]);
      if (!shares_slices(mine, theirs)) continue;
      const bool both_add = mine.action() == Action::reduce && theirs.action() == Action::reduce;
      const bool waits = schedule.dst(theirs) == schedule.src(mine) || schedule.src(theirs) == schedule.dst(mine) ||
                         (schedule.dst(theirs) == schedule.dst(mine) && !both_add);
      if (waits) first[i] = std::max(first[i], first[j] + 1);
    }
  }
  return first;
}

/// Which transfers are on a lane that passes something that another lane passes too: `shared(i)` are the names of what
/// transfer i passes.
template <class Shared>
std::vector<char> sharing_by_definition(const Schedule& schedule, const Shared& shared) {
  using Lane = std::tuple<ChannelId, Rank, Rank>;
  const auto lane_of = [&](std::size_t i) {
    const Transfer& transfer = schedule.transfers[i];
    return Lane{transfer.channel(), schedule.src(transfer), schedule.dst(transfer)};
  };
  std::set<Lane> sharing;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (lane_of(i) == lane_of(j)) continue;
      const auto mine = shared(i);
      const auto theirs = shared(j);
      const bool meet =
          std::ranges::any_of(mine, [&](const auto& name) { return std::ranges::find(theirs, name) != theirs.end(); });
      if (!meet) continue;
      sharing.insert(lane_of(i));
      sharing.insert(lane_of(j));
    }
  }
  std::vector<char> is_sharing;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i)
    is_sharing.push_back(sharing.contains(lane_of(i)) ? 1 : 0);
  return is_sharing;
}

}  // namespace espalier::test
