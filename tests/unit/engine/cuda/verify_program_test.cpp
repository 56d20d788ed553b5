// A program that lacks a wait, a signal or a byte is refused, by the rule that it breaks; and a run that hangs ends.
#include "engine/cuda/verify_program.h"

#include <gtest/gtest.h>

#include "engine/cuda/run_on_threads.h"

namespace espalier::engine::cuda {
namespace {

/// Two ranks of 8 bytes: rank 1 copies rank 0's, and rank 0 finishes when it has.
DeviceProgram copy_of_two() {
  DeviceProgram program;
  program.element_size = 4;
  program.counter_count = 2;
  program.memories = {{8, 8, 0, std::nullopt}, {8, 8, 0, std::nullopt}};
  program.pieces = {{8, {Place::send, 0}, {Place::receive, 0}, {Place::receive, 0}}};
  program.waits = {{0, 1}, {1, 1}};
  program.steps = {{StepKind::enter, Rank(0), 0, 0, 0, 0, 0},
                   {StepKind::finish, Rank(0), 0, 0, 1, 1, no_counter},
                   {StepKind::copy, Rank(0), 0, 1, 0, 1, 1}};
  program.blocks = {{Rank(0), 0, 2}, {Rank(1), 2, 1}};
  return program;
}

std::string error_of(const DeviceProgram& program) {
  const auto verified = verify(program, false);
  return verified ? "" : verified.error().message;
}

TEST(VerifyProgram, AcceptsACopyOfTwoRanks) { EXPECT_EQ(error_of(copy_of_two()), ""); }

TEST(VerifyProgram, RefusesBytesOutsideAMemory) {
  DeviceProgram program = copy_of_two();
  program.pieces[0].source.offset = 4;
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 0: a piece does not lie within its memory");
}

TEST(VerifyProgram, RefusesWritesToASendBuffer) {
  DeviceProgram program = copy_of_two();
  program.pieces[0].target.place = Place::send;
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 0: it writes a send buffer");
}

TEST(VerifyProgram, RefusesAWaitWithoutItsSignal) {
  DeviceProgram program = copy_of_two();
  program.waits[1].count = 2;
  EXPECT_EQ(error_of(program), "counter 1 never reaches 2");
}

TEST(VerifyProgram, RefusesACounterOfTwoBlocks) {
  DeviceProgram program = copy_of_two();
  program.steps[1].signal = 1;
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 0: counter 1 is another block's");
}

TEST(VerifyProgram, RefusesBlocksThatWaitForEachOther) {
  DeviceProgram program = copy_of_two();
  program.steps[0].first_wait = 1;  // Rank 0 enters when rank 1 has copied, which waits for rank 0 to enter.
  program.steps[0].wait_count = 1;
  EXPECT_EQ(error_of(program), "rank 0, block 0, step 0: it waits for something that waits for it");
}

TEST(VerifyProgram, RefusesScratchThatNobodyWrote) {
  DeviceProgram program = copy_of_two();
  program.memories[0].scratch = 8;
  program.pieces[0].source.place = Place::scratch;
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 0: it reads what nobody wrote");
}

TEST(VerifyProgram, RefusesAWriteThatNothingOrdersAfterARead) {
  DeviceProgram program = copy_of_two();
  program.pieces[0].source.place = Place::receive;
  program.pieces.push_back({4, {Place::send, 0}, {Place::receive, 4}, {Place::receive, 4}});
  program.steps[1] = {StepKind::copy, Rank(0), 1, 1, 1, 1, no_counter};  // Waits until rank 1 has read: in order.
  EXPECT_EQ(error_of(program), "");
  program.steps[1].wait_count = 0;
  EXPECT_EQ(error_of(program),
            "rank 1, block 1, step 0: nothing orders it with what writes the same bytes: rank 0, block 0, step 1 of "
            "the next call");
}

TEST(VerifyProgram, RefusesAnAverageThatPeersStillRead) {
  DeviceProgram program = copy_of_two();
  program.reduces = true;
  program.pieces[0].source.place = Place::receive;
  EXPECT_EQ(error_of(program), "");
  program.steps[1].wait_count = 0;
  EXPECT_EQ(error_of(program),
            "rank 1, block 1, step 0: nothing orders it with what writes the same bytes: rank 0, block 0, step 1 of "
            "the next call");
}

TEST(VerifyProgram, RefusesPiecesOfAStepThatMeet) {
  DeviceProgram program = copy_of_two();
  program.pieces.push_back({4, {Place::send, 0}, {Place::receive, 4}, {Place::receive, 4}});  // As bytes 4 to 8 above.
  program.steps[2].piece_count = 2;
  EXPECT_EQ(error_of(program),
            "rank 1, block 1, step 0: nothing orders it with what writes the same bytes: rank 1, block 1, step 0");
}

/// Rank 0 sends its 8 bytes to rank 1's mailbox, which takes them from there.
DeviceProgram message_of_two() {
  DeviceProgram program;
  program.element_size = 4;
  program.counter_count = 2;
  program.memories = {{8, 8, 0, std::nullopt}, {8, 8, 0, std::nullopt, 16}};
  program.pieces = {{8, {Place::send, 0}, {Place::receive, 0}, {Place::receive, 0}}};
  program.waits = {{1, 0}};  // In the next call: rank 1 has read what the last one left.
  program.destinations = {{Rank(1), 0, 0, 0}};
  Step send{StepKind::send, Rank(0), 0, 1, 0, 1, no_counter};
  send.destination_count = 1;
  program.steps = {send, {StepKind::receive, Rank(0), 0, 1, 0, 0, 1}};
  program.blocks = {{Rank(0), 0, 1}, {Rank(1), 1, 1}};
  return program;
}

TEST(VerifyProgram, AcceptsAMessageOfTwoRanks) { EXPECT_EQ(error_of(message_of_two()), ""); }

TEST(VerifyProgram, RefusesAMailboxThatIsFilledBeforeItWasRead) {
  DeviceProgram program = message_of_two();
  program.steps[0].wait_count = 0;
  EXPECT_EQ(error_of(program),
            "rank 0, block 0, step 0 of the next call: nothing orders it with what reads the same bytes: rank 1, block "
            "1, step 0");
}

TEST(VerifyProgram, RefusesASlotThatNobodyReadsOrFills) {
  DeviceProgram program = message_of_two();
  program.steps[1].kind = StepKind::copy;
  EXPECT_EQ(error_of(program), "rank 0, block 0, step 0: nobody reads the slot of the mailbox that it fills");
  program = message_of_two();
  program.steps[0].destination_count = 0;
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 0: nobody fills the slot of the mailbox that it reads");
}

TEST(VerifyProgram, RefusesSlotsThatOverlapOrLieOutside) {
  DeviceProgram program = message_of_two();
  program.memories[1].mailbox = 8;
  EXPECT_EQ(error_of(program), "rank 0, block 0, step 0: a slot does not lie within its mailbox");
  program = message_of_two();
  program.pieces[0].length = 12;  // Two packets, as long as sender and receiver agree: but the memory ends.
  EXPECT_EQ(error_of(program), "rank 0, block 0, step 0: a piece does not lie within its memory");
  program = message_of_two();
  program.memories = {{16, 16, 0, std::nullopt}, {16, 16, 0, std::nullopt, 48}};
  program.pieces = {{16, {Place::send, 0}, {Place::receive, 0}, {Place::receive, 0}},
                    {8, {Place::send, 0}, {Place::receive, 0}, {Place::receive, 0}}};
  program.destinations.push_back({Rank(1), 0, 16, no_counter});
  Step second = program.steps[0];
  second.first_piece = 1;
  second.first_destination = 1;
  Step third = program.steps[1];
  third.first_piece = 1;
  third.mailbox = 16;
  program.steps = {program.steps[0], second, program.steps[1], third};
  program.blocks = {{Rank(0), 0, 2}, {Rank(1), 2, 2}};
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 1: its slot of the mailbox overlaps another");
}

/// Rank 1 says by a counter of its own that it is there, after it received; that orders nothing of rank 0 before it
/// sent.
TEST(VerifyProgram, RefusesToLearnFromAMailbox) {
  DeviceProgram program = message_of_two();
  program.counter_count = 3;
  // Rank 0 first writes its receive buffer; rank 1 reads that, with nothing between but the message. In the next call
  // rank 0 waits until that was read.
  program.pieces.push_back({8, {Place::send, 0}, {Place::receive, 0}, {Place::receive, 0}});
  program.pieces.push_back({8, {Place::receive, 0}, {Place::receive, 0}, {Place::receive, 0}});
  program.waits.push_back({2, 0});
  const Step own{StepKind::copy, Rank(0), 1, 1, 1, 1, no_counter};
  const Step read{StepKind::copy, Rank(0), 2, 1, 0, 0, 2};
  program.steps = {own, program.steps[0], program.steps[1], read};
  program.blocks = {{Rank(0), 0, 2}, {Rank(1), 2, 2}};
  EXPECT_EQ(error_of(program),
            "rank 1, block 1, step 1: nothing orders it with what writes the same bytes: rank 0, block 0, step 0");
}

TEST(VerifyProgram, RefusesATargetOfADestinationOutsideItsMemory) {
  DeviceProgram program = copy_of_two();
  program.destinations = {{Rank(0), 0, 0, no_counter}};
  program.targets = {{Place::receive, 4}};
  program.steps[2].destination_count = 1;
  EXPECT_EQ(error_of(program), "rank 1, block 1, step 0: a destination's target does not lie within its memory");
}

TEST(RunOnThreads, SaysFromWhomNothingCame) {
  DeviceProgram program = message_of_two();
  program.steps[0].destination_count = 0;
  std::array<std::byte, 8> bytes{};
  std::array<std::byte, 8> received{};
  const std::array buffers = {RankBuffers{bytes.data(), received.data(), nullptr},
                              RankBuffers{bytes.data(), received.data(), nullptr}};
  const auto done =
      run_on_threads(program, buffers, {ElementType::int32, ReduceOperation::sum, std::chrono::milliseconds(20)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "rank 1, block 1: nothing came from rank 0 within 20 ms");
}

TEST(RunOnThreads, EndsAtItsDeadline) {
  DeviceProgram program = copy_of_two();
  program.steps[0].signal = no_counter;
  std::array<std::byte, 8> bytes{};
  std::array<std::byte, 8> received{};
  const std::array buffers = {RankBuffers{bytes.data(), received.data(), nullptr},
                              RankBuffers{bytes.data(), received.data(), nullptr}};
  const auto done =
      run_on_threads(program, buffers, {ElementType::int32, ReduceOperation::sum, std::chrono::milliseconds(20)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable);
  EXPECT_NE(done.error().message.find("within 20 ms"), std::string::npos) << done.error().message;
}

}  // namespace
}  // namespace espalier::engine::cuda
