#include "engine/program/direct_program.h"

#include <algorithm>

namespace espalier::engine {
namespace {

/// More chunks of a block than this only cost.
constexpr std::int64_t max_block_chunks = 4096;

/// Of which chunks an op is: every `step`-th from `first` on.
struct Deal {
  std::uint32_t first = 0;
  std::uint32_t step = 1;
};

/// How many streams there are between the same two ranks in the same direction, and which of them it is.
Deal deal_of(const RankProgram& program, std::size_t stream) {
  const auto is_alike = [&](std::size_t other) {
    return other < program.streams.size() && program.streams[other].peer == program.streams[stream].peer &&
           program.streams[other].is_outgoing == program.streams[stream].is_outgoing;
  };
  std::size_t begin = stream;
  while (begin > 0 && is_alike(begin - 1)) --begin;
  std::size_t end = stream + 1;
  while (is_alike(end)) ++end;
  return {static_cast<std::uint32_t>(stream - begin), static_cast<std::uint32_t>(end - begin)};
}

void add_op(RankProgram& program, const Stream& stream, TransferId transfer, std::uint32_t chunk, std::int64_t begin,
            std::int64_t length) {
  Op op;
  op.transfer = transfer;
  op.chunk = chunk;
  op.first_piece = static_cast<std::uint32_t>(program.pieces.size());
  op.bytes = length;
  if (length > 0) {
    const std::int64_t own = stream.block.offset + begin;
    const Location source{Place::send, stream.is_outgoing ? own : begin};
    const Location target{Place::receive, stream.is_outgoing ? begin : own};
    op.piece_count = 1;
    program.pieces.push_back({length, source, target, target});
  }
  program.max_op_bytes = std::max(program.max_op_bytes, length);
  program.ops.push_back(op);
}

void add_ops(RankProgram& program, std::size_t index, TransferId transfer, std::int64_t chunk) {
  Stream& stream = program.streams[index];
  const Deal deal = deal_of(program, index);
  const std::int64_t bytes = stream.block.bytes;
  const std::int64_t length = std::max(chunk, (bytes + max_block_chunks - 1) / max_block_chunks);
  const auto count = static_cast<std::uint32_t>(std::max<std::int64_t>(1, (bytes + length - 1) / length));
  stream.first_op = static_cast<std::uint32_t>(program.ops.size());
  for (std::uint32_t i = deal.first; i < count; i += deal.step) {
    const std::int64_t begin = i * length;
    add_op(program, stream, transfer, i, begin, std::min(length, bytes - begin));
  }
  stream.op_count = static_cast<std::uint32_t>(program.ops.size()) - stream.first_op;
  stream.initial_credits = stream.op_count;
}

std::int64_t end_of(const std::vector<Block>& blocks) {
  std::int64_t end = 0;
  for (const Block& block : blocks) {
    if (block.bytes > 0) end = std::max(end, block.offset + block.bytes);
  }
  return end;
}

std::int64_t sum_of(const std::vector<Block>& blocks) {
  std::int64_t sum = 0;
  for (const Block& block : blocks) sum += block.bytes;
  return sum;
}

}  // namespace

RankProgram make_direct_program(std::uint32_t ranks, Rank self, const PairStreams& streams) {
  RankProgram program;
  program.has_counts = true;
  for (const bool is_outgoing : {false, true}) {
    for (std::uint32_t step = 1; step < ranks; ++step) {
      const Rank peer((self.value() + (is_outgoing ? step : ranks - step)) % ranks);
      for (const std::uint32_t number : is_outgoing ? streams(self, peer) : streams(peer, self)) {
        Stream stream;
        stream.peer = peer;
        stream.number = number;
        stream.is_outgoing = is_outgoing;
        program.streams.push_back(stream);
      }
    }
  }
  return program;
}

void set_blocks(RankProgram& program, Rank self, const DirectBlocks& blocks, std::int64_t chunk,
                std::int64_t element_size) {
  const auto ranks = static_cast<std::uint32_t>(blocks.sent.size());
  program.ops.clear();
  program.pieces.clear();
  program.local_copies.clear();
  program.max_op_bytes = 0;
  program.element_size = element_size;
  for (std::size_t i = 0; i < program.streams.size(); ++i) {
    Stream& stream = program.streams[i];
    const std::size_t peer = stream.peer.index();
    stream.block = (stream.is_outgoing ? blocks.sent : blocks.received)[peer];
    stream.bytes_back = (stream.is_outgoing ? blocks.received : blocks.sent)[peer].bytes;
    const Rank from = stream.is_outgoing ? self : stream.peer;
    const Rank to = stream.is_outgoing ? stream.peer : self;
    add_ops(program, i, TransferId(from.value() * ranks + to.value()), chunk);
  }
  const Block& kept = blocks.sent[self.index()];
  if (kept.bytes > 0) {
    program.local_copies.push_back(
        {{Place::send, kept.offset}, {Place::receive, blocks.received[self.index()].offset}, kept.bytes});
  }
  program.send_bytes = end_of(blocks.sent);
  program.receive_bytes = end_of(blocks.received);
  program.message_bytes = std::max(sum_of(blocks.sent), sum_of(blocks.received));
}

}  // namespace espalier::engine
