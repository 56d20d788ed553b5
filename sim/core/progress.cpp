#include "sim/core/progress.h"

#include <bit>

#include "base/check.h"

namespace espalier::sim {
namespace {

std::size_t size_class(std::uint32_t chunks) { return static_cast<std::size_t>(std::bit_width(chunks - 1)); }

}  // namespace

void Progress::reset(std::size_t transfer_count) {
  blocks_.assign(transfer_count, not_started);
  arena_.clear();
  free_blocks_ = no_blocks();
  finished_.clear();
}

void Progress::start(TransferId transfer, std::uint32_t chunks, std::int64_t now) {
  forget_before(now);
  const std::size_t k = size_class(chunks);
  std::uint32_t block = free_blocks_[k];
  if (block == no_block) {
    const std::size_t length = std::size_t{1} << k;
    ESPALIER_CHECK(arena_.size() + length < forgotten, "the chunks under way fit 32 bits");
    block = static_cast<std::uint32_t>(arena_.size());
    arena_.resize(arena_.size() + length);
  } else {
    free_blocks_[k] = static_cast<std::uint32_t>(arena_[block].departed);
    for (std::uint32_t i = 0; i < chunks; ++i) arena_[block + i] = {};
  }
  blocks_[transfer.index()] = block;
}

void Progress::forget_before(std::int64_t now) {
  while (!finished_.empty() && finished_.front().time < now) {
    const auto [time, transfer, chunks] = finished_.front();
    finished_.pop_front();
    const std::uint32_t block = blocks_[transfer.index()];
    blocks_[transfer.index()] = forgotten;
    std::uint32_t& first_free = free_blocks_[size_class(chunks)];
    arena_[block].departed = first_free;
    first_free = block;
  }
}

}  // namespace espalier::sim
