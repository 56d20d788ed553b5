#include "engine/verbs/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::engine {
namespace {

TEST(Frame, AnOpIsCutIntoSlots) {
  const auto slot = static_cast<std::int64_t>(slot_payload);
  EXPECT_EQ(frame_payload(0, 0), 0);
  EXPECT_EQ(frame_payload(slot, 0), slot);
  EXPECT_EQ(frame_payload(2 * slot + 5, slot), slot);
  EXPECT_EQ(frame_payload(2 * slot + 5, 2 * slot), 5);
}

TEST(Frame, OnlyWhatIsMovedInOneLargePieceMayBeDirect) {
  Op op;
  op.piece_count = 1;
  op.bytes = min_direct;
  EXPECT_TRUE(may_be_direct(op));
  op.bytes = min_direct - 1;
  EXPECT_FALSE(may_be_direct(op));
  op.bytes = min_direct;
  op.piece_count = 2;
  EXPECT_FALSE(may_be_direct(op));
  op.piece_count = 1;
  op.reduces = true;
  EXPECT_FALSE(may_be_direct(op));
}

TEST(Frame, ACursorGoesOnWhereTheLastFrameEnded) {
  std::string memory = "0123456789abcdef";
  RankProgram program;
  program.pieces = {
      {3, {Place::receive, 10}, {}, {}}, {4, {Place::receive, 0}, {}, {}}, {2, {Place::receive, 6}, {}, {}}};
  Buffers buffers;
  buffers.base[static_cast<std::size_t>(Place::receive)] = reinterpret_cast<std::byte*>(memory.data());
  StreamCall call;
  call.program = &program;
  call.buffers = &buffers;
  Op op;
  op.piece_count = 3;
  op.bytes = 9;
  PieceCursor cursor;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> parts;
    const auto use = [&](const std::byte* from, std::size_t length) {
      parts.emplace_back(reinterpret_cast<const char*>(from), length);
    };
    cursor.begin();
    cursor.advance(call, op, &Piece::source, 2, use);
    cursor.advance(call, op, &Piece::source, 5, use);
    cursor.advance(call, op, &Piece::source, 2, use);
    EXPECT_EQ(parts, (std::vector<std::string>{"ab", "c", "0123", "67"}));
  }
}

}  // namespace
}  // namespace espalier::engine
