#include "engine/cuda/device/block_choice.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

namespace espalier::engine::cuda {
namespace {

constexpr std::uint32_t max_blocks_per_rank = 132;
constexpr std::uint32_t streams_per_pair = 4;
/// The fewest bytes of a chunk that are worth a block, and the most that one gets of a chunk.
constexpr std::int64_t min_bytes_of_block = std::int64_t{8} << 10;
constexpr std::int64_t max_bytes_of_block = std::int64_t{128} << 10;
/// The largest message for which mailboxes are taken: they move twice the bytes and save a round trip per transfer.
constexpr std::int64_t max_low_latency_bytes = std::int64_t{32} << 10;

/// The most streams that come to a rank.
std::uint32_t count_streams(const Schedule& schedule) {
  std::set<std::tuple<Rank, Rank, std::uint32_t>> streams;
  std::vector<std::uint32_t> of_rank(schedule.collective.rank_count);
  std::uint32_t most = 1;
  for (const Transfer& transfer : schedule.transfers) {
    const Route route = schedule.route(transfer.route);
    if (route.dst.index() >= of_rank.size()) continue;  // A switch.
    if (!streams.emplace(route.dst, route.src, transfer.channel_value % streams_per_pair).second) continue;
    most = std::max(most, ++of_rank[route.dst.index()]);
  }
  return most;
}

/// Of a rank alone, its own copy.
std::int64_t longest_chunk(const Schedule& schedule, const Layout& layout, const Pacing& pacing) {
  std::int64_t longest = schedule.transfers.empty() ? layout.size().count : 0;
  for (const Transfer& transfer : schedule.transfers) longest = std::max(longest, layout.range(transfer).length());
  return std::min(longest, pacing.chunk.count);
}

/// Blocks that carry out a stream together.
std::uint32_t max_together(const Schedule& schedule, std::uint32_t blocks) {
  return std::max(1U, blocks / count_streams(schedule));
}

std::uint32_t clamp_blocks(std::uint32_t blocks) { return std::clamp(blocks, 1U, max_blocks_per_rank); }

}  // namespace

BlockOptions choose_blocks(const Schedule& schedule, const Layout& layout, const Pacing& pacing,
                           std::uint32_t max_blocks) {
  const std::int64_t together = std::clamp<std::int64_t>(longest_chunk(schedule, layout, pacing) / min_bytes_of_block,
                                                         1, max_together(schedule, clamp_blocks(max_blocks)));
  return {.streams_per_pair = streams_per_pair,
          .blocks_per_rank = clamp_blocks(max_blocks),
          .blocks_per_stream = static_cast<std::uint32_t>(together),
          .low_latency = layout.size().count <= max_low_latency_bytes};
}

Bytes choose_gpu_chunk(const Schedule& schedule, std::uint32_t max_blocks) {
  return Bytes{max_together(schedule, clamp_blocks(max_blocks)) * max_bytes_of_block};
}

}  // namespace espalier::engine::cuda
