// What happens to bytes on the way: flipped, cut off, doubled, in another order.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/networks/two_ends.h"

namespace espalier {
namespace {

using test::BroadcastEnd;
using test::connected_pair;

constexpr std::size_t message = 96;
constexpr std::size_t chunk = 32;
constexpr std::size_t opening = 80;        ///< Bytes of the frame that begins a call.
constexpr std::size_t frame = 32 + chunk;  ///< A chunk with its header.

std::vector<std::byte> numbers() {
  std::vector<std::byte> bytes(message);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

/// All that a sender puts on the wire for one call.
std::string wire_of(std::uint64_t sequence, bool checksum) {
  auto [near, far] = connected_pair();
  BroadcastEnd sender(0, std::move(near), message, chunk, checksum);
  sender.data = numbers();
  sender.begin(sequence);
  sender.advance();
  EXPECT_TRUE(sender.is_done()) << sender.call_error();
  std::string wire(4096, '\0');
  const ssize_t got = recv(far.get(), wire.data(), wire.size(), 0);
  wire.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return wire;
}

struct Outcome {
  bool is_done = false;
  bool is_right = false;
  std::string error;
};

/// What a receiver makes of it; the connection ends after it when `ends`.
Outcome receive(const std::string& wire, bool ends = false) {
  auto [near, far] = connected_pair();
  BroadcastEnd receiver(1, std::move(near), message, chunk, false);
  receiver.begin(1);
  // In two halves, so that frames are also cut by the wire.
  for (const std::string_view part :
       {std::string_view(wire).substr(0, wire.size() / 2), std::string_view(wire).substr(wire.size() / 2)}) {
    EXPECT_EQ(send(far.get(), part.data(), part.size(), MSG_NOSIGNAL), static_cast<ssize_t>(part.size()));
    receiver.advance();
  }
  if (ends) {
    far.reset();
    receiver.advance();
  }
  return {receiver.is_done(), receiver.data == numbers(), receiver.call_error()};
}

TEST(Frames, ArriveAsTheyAre) {
  for (const bool checksum : {false, true}) {
    const std::string wire = wire_of(1, checksum);
    ASSERT_EQ(wire.size(), opening + message / chunk * frame);
    const Outcome outcome = receive(wire);
    EXPECT_TRUE(outcome.is_done && outcome.is_right) << outcome.error;
  }
}

TEST(Frames, Fault8AFlippedBitIsFoundByTheChecksum) {
  const std::string wire = wire_of(1, true);
  std::size_t found_by_checksum = 0;
  for (std::size_t bit = 0; bit < 8 * wire.size(); ++bit) {
    std::string changed = wire;
    changed[bit / 8] = static_cast<char>(static_cast<unsigned char>(changed[bit / 8]) ^ (1U << bit % 8));
    const Outcome outcome = receive(changed);
    EXPECT_TRUE(!outcome.error.empty() || outcome.is_right) << "bit " << bit << " made wrong data";
    if (outcome.error.find("changed on the way (CRC32C)") != std::string::npos) ++found_by_checksum;
  }
  // At least every bit of the data and of the checksums themselves.
  EXPECT_GE(found_by_checksum, 8 * message + message / chunk * 32);
}

TEST(Frames, Fault9ATruncatedFrameIsNamed) {
  const std::string wire = wire_of(1, false);
  for (std::size_t length = 0; length < wire.size(); ++length) {
    const Outcome outcome = receive(wire.substr(0, length), true);
    ASSERT_EQ(outcome.error, "the connection to rank 0 was closed by it") << length;
  }
}

TEST(Frames, Fault9DoubledAndReorderedFramesAreNamed) {
  const std::string wire = wire_of(1, true);
  const std::string begin = wire.substr(0, opening);
  const auto part = [&](std::size_t index) { return wire.substr(opening + index * frame, frame); };
  EXPECT_EQ(receive(begin + part(0) + part(0) + part(2)).error,
            "from rank 0: transfer 0 chunk 1 of 32 bytes was due, transfer 0 chunk 0 of 32 bytes of call 1 came");
  EXPECT_EQ(receive(begin + part(0) + part(2) + part(1)).error,
            "from rank 0: transfer 0 chunk 1 of 32 bytes was due, transfer 0 chunk 2 of 32 bytes of call 1 came");
  EXPECT_EQ(receive(begin + begin + part(0) + part(1))
                .error.find("from rank 0: transfer 0 chunk 0 of 32 bytes was "
                            "due"),
            0U);
  EXPECT_EQ(receive(part(0) + begin + part(1)).error, "from rank 0: what came is no beginning of a call");
}

TEST(Frames, Fault9AFrameOfAnotherCallIsNamed) {
  const Outcome outcome = receive(wire_of(2, false));
  EXPECT_EQ(
      outcome.error,
      "ranks disagree on the number of the call: rank 1 makes call 1: broadcast of 96 uint8, root 0; rank 0 makes "
      "call 2: broadcast of 96 uint8, root 0");
}

}  // namespace
}  // namespace espalier
