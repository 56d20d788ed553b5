#include "engine/communicator/direct_call.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::engine {
namespace {

/// In the place of a schedule's hash: the calls of ranks that have one are others.
constexpr std::uint64_t direct_mark = 0xD14EC7;

/// Moves blocks so that the first that is not empty begins the buffer; by how many bytes.
std::int64_t move_to_front(std::vector<Block>& blocks) {
  std::int64_t first = INT64_MAX;
  for (const Block& block : blocks) {
    if (block.bytes > 0) first = std::min(first, block.offset);
  }
  if (first == INT64_MAX) first = 0;
  for (Block& block : blocks) block.offset = block.bytes > 0 ? block.offset - first : 0;
  return first;
}

}  // namespace

DirectCall::DirectCall(std::uint32_t ranks, Rank self, const PairStreams& streams, Bytes chunk) : self_(self) {
  prepared_.program = make_direct_program(ranks, self, streams);
  prepared_.schedule_hash = direct_mark;
  prepared_.chunk = chunk;
  blocks_.sent.resize(ranks);
  blocks_.received.resize(ranks);
  ordered_.reserve(ranks);
  kept_.reserve(ranks);
}

Result<void> DirectCall::take(CallArguments& arguments) {
  if (arguments.kind != CollectiveKind::all_to_all) {
    return fail(ErrorCode::invalid_input, fmt::format("{} takes no counts per peer", to_string(arguments.kind)),
                "all_to_all does");
  }
  const std::int64_t element = size_of(arguments.type);
  if (auto taken = take_blocks(arguments.send_blocks, "sent", element, blocks_.sent); !taken) return taken;
  if (auto taken = take_blocks(arguments.receive_blocks, "received", element, blocks_.received); !taken) return taken;
  const std::size_t self = self_.index();
  if (blocks_.sent[self].bytes != blocks_.received[self].bytes) {
    return fail(ErrorCode::invalid_input,
                fmt::format("rank {} sends {} elements to itself and receives {}", self,
                            blocks_.sent[self].bytes / element, blocks_.received[self].bytes / element),
                "give the same count for both");
  }
  const std::int64_t sent_from = move_to_front(blocks_.sent);
  const std::int64_t received_from = move_to_front(blocks_.received);
  if (arguments.send != nullptr) arguments.send = static_cast<const std::byte*>(arguments.send) + sent_from;
  if (arguments.receive != nullptr) arguments.receive = static_cast<std::byte*>(arguments.receive) + received_from;
  if (auto checked = check_received(); !checked) return checked;
  kept_.clear();
  kept_bytes_ = 0;
  const auto* send = static_cast<const std::byte*>(arguments.send);
  if (overlaps(send, static_cast<const std::byte*>(arguments.receive))) keep(send);
  set_blocks(prepared_.program, self_, blocks_, prepared_.chunk.count, element);
  return {};
}

Result<void> DirectCall::take_blocks(const BlockCounts& given, const char* what, std::int64_t element_size,
                                     std::vector<Block>& blocks) {
  const std::size_t ranks = blocks.size();
  if (given.counts.size() != ranks || (!given.displacements.empty() && given.displacements.size() != ranks)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} counts and {} displacements of what is {} among {} ranks", given.counts.size(),
                            given.displacements.size(), what, ranks),
                "give a count for each rank, and a displacement for each or none");
  }
  const std::int64_t most = max_message_size.count / element_size;
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t count = given.counts[rank];
    const std::int64_t begin = given.displacements.empty() ? sum : given.displacements[rank];
    if (count < 0 || begin < 0) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} {} of what is {}, for rank {}", count < 0 ? "a count of" : "a displacement of",
                              std::min(count, begin), what, rank),
                  "counts and displacements are not negative");
    }
    if (count > most - sum || begin > most) {
      return fail(ErrorCode::too_large,
                  fmt::format("what is {}, with {} elements at {} for rank {}, is past the limit of 1 PiB", what, count,
                              begin, rank));
    }
    sum += count;
    blocks[rank] = {begin * element_size, count * element_size};
  }
  return {};
}

Result<void> DirectCall::check_received() {
  ordered_.clear();
  for (const Block& block : blocks_.received) {
    if (block.bytes > 0) ordered_.push_back(block);
  }
  if (!std::ranges::is_sorted(ordered_, {}, &Block::offset)) std::ranges::sort(ordered_, {}, &Block::offset);
  for (std::size_t i = 1; i < ordered_.size(); ++i) {
    const Block& before = ordered_[i - 1];
    if (before.offset + before.bytes <= ordered_[i].offset) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("what is received from two ranks overlaps, {} bytes behind the first of the blocks",
                            ordered_[i].offset),
                "look at the displacements of what is received");
  }
  return {};
}

bool DirectCall::overlaps(const std::byte* send, const std::byte* receive) {
  if (send == nullptr || receive == nullptr || ordered_.empty()) return false;
  const std::int64_t shift = send - receive;
  const std::int64_t end = ordered_.back().offset + ordered_.back().bytes;
  for (const Block& block : blocks_.sent) {
    const std::int64_t begin = block.offset + shift;
    if (block.bytes == 0 || begin >= end || begin + block.bytes <= 0) continue;
    // The first that ends behind where this one begins.
    const auto next =
        std::ranges::upper_bound(ordered_, begin, {}, [](const Block& one) { return one.offset + one.bytes; });
    if (next != ordered_.end() && next->offset < begin + block.bytes) return true;
  }
  return false;
}

void DirectCall::keep(const std::byte* send) {
  constexpr std::int64_t line = 64;
  for (Block& block : blocks_.sent) {
    if (block.bytes == 0) continue;
    kept_.push_back({send + block.offset, kept_bytes_, block.bytes});
    block.offset = kept_bytes_;
    kept_bytes_ += (block.bytes + line - 1) / line * line;
  }
}

}  // namespace espalier::engine
