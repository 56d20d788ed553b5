#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <cstdint>
#include <vector>

#include "engine/communicator/communicator.h"
#include "engine/communicator/prepared_call.h"
#include "engine/program/direct_program.h"

namespace espalier::engine {

/// All all_to_alls with counts per peer of one group, one after the other, by direct messages: what is prepared are the
/// streams; each call brings its own ops, which need no other rank's counts.
class DirectCall {
 public:
  /// Bytes that are kept for a call, as what it receives overlaps what it sends.
  struct Kept {
    const std::byte* from = nullptr;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
  };

  DirectCall(std::uint32_t ranks, Rank self, const PairStreams& streams, Bytes chunk);

  /// Takes the next call; `arguments` then begin at the first byte that they use. Errors: invalid_input, too_large.
  Result<void> take(CallArguments& arguments);
  /// What has to be copied first, into memory that is then the send buffer; mostly nothing.
  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }
  [[nodiscard]] std::int64_t kept_bytes() const { return kept_bytes_; }

  [[nodiscard]] PreparedCall& prepared() { return prepared_; }

 private:
  Result<void> take_blocks(const BlockCounts& given, const char* what, std::int64_t element_size,
                           std::vector<Block>& blocks);
  Result<void> check_received();
  [[nodiscard]] bool overlaps(const std::byte* send, const std::byte* receive);
  void keep(const std::byte* send);

  Rank self_;
  PreparedCall prepared_;
  DirectBlocks blocks_;
  std::vector<Block> ordered_;  ///< Blocks that are received and not empty, by where they begin.
  std::vector<Kept> kept_;
  std::int64_t kept_bytes_ = 0;
};

}  // namespace espalier::engine
