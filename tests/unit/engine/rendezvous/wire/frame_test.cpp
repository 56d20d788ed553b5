#include "engine/rendezvous/wire/frame.h"

#include <gtest/gtest.h>

#include "engine/rendezvous/peers.h"
#include "engine/rendezvous/wire/bytes.h"
#include "engine/rendezvous/wire/messages.h"

namespace espalier::engine::rendezvous {
namespace {

std::string frame_bytes(FrameType type, const std::string& payload) {
  return frame_header(type, payload.size()) + payload;
}

TEST(FrameReader, FindsFramesHoweverTheBytesArrive) {
  const std::string stream = frame_bytes(FrameType::heartbeat, "") + frame_bytes(FrameType::put, "some bytes") +
                             frame_bytes(FrameType::goodbye, std::string(300, 'x'));
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader(300);
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.append(std::string_view(stream).substr(at, piece));
      while (true) {
        auto frame = reader.next();
        ASSERT_TRUE(frame.has_value());
        if (!*frame) break;
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].type, FrameType::heartbeat);
    EXPECT_EQ(frames[1].payload, "some bytes");
    EXPECT_EQ(frames[2].payload.size(), 300U);
  }
}

TEST(FrameReader, RefusesALengthPastTheLimitByItsHeaderAlone) {
  FrameReader reader(1000);
  reader.append(frame_header(FrameType::put, 1001));
  const auto frame = reader.next();
  ASSERT_FALSE(frame.has_value());
  EXPECT_EQ(frame.error().message, "a frame of 1001 bytes where at most 1000 are taken");
}

TEST(FrameReader, RefusesUnknownTypes) {
  for (const std::uint32_t type : {0U, static_cast<std::uint32_t>(last_frame_type) + 1, 0x01000001U}) {
    FrameReader reader(1000);
    reader.append(ByteWriter().u32(0).u32(type).bytes());
    EXPECT_FALSE(reader.next().has_value());
  }
}

TEST(FrameReader, RefusesOtherProtocols) {
  for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01"}) {
    FrameReader reader(largest_greeting);
    reader.append(std::string_view(text, 8));
    EXPECT_FALSE(reader.next().has_value()) << text;
  }
}

TEST(Messages, ComeBackAsTheyWere) {
  const Claim claim{1, 3, 8, "job 7", "host a, process 1", hmac_sha256("a", "b"), hmac_sha256("c", "d")};
  const auto claim_again = decode_claim(encode(claim));
  ASSERT_TRUE(claim_again);
  EXPECT_EQ(claim_again->rank, 3U);
  EXPECT_EQ(claim_again->world, 8U);
  EXPECT_EQ(claim_again->job, "job 7");
  EXPECT_EQ(claim_again->name, claim.name);
  EXPECT_EQ(claim_again->nonce, claim.nonce);
  EXPECT_EQ(claim_again->code, claim.code);

  const auto put = decode_put(encode(Put{7, 1500, "tag", {0, 2, 5}, std::string("a\0b", 3)}));
  ASSERT_TRUE(put);
  EXPECT_EQ(put->members, (std::vector<std::uint32_t>{0, 2, 5}));
  EXPECT_EQ(put->blob, std::string("a\0b", 3));

  const Result<std::vector<std::string>> blobs = std::vector<std::string>{"one", "", "three"};
  const auto gathered = decode_gathered(encode_gathered_id(9) + encode_gathered_body(blobs));
  ASSERT_TRUE(gathered && gathered->blobs);
  EXPECT_EQ(gathered->id, 9U);
  EXPECT_EQ(*gathered->blobs, *blobs);

  const Result<std::vector<std::string>> error = fail(ErrorCode::too_large, "message", "help");
  const auto failed = decode_gathered(encode_gathered_id(9) + encode_gathered_body(error));
  ASSERT_TRUE(failed && !failed->blobs);
  EXPECT_EQ(failed->blobs.error().code, ErrorCode::too_large);
  EXPECT_EQ(failed->blobs.error().help, "help");

  const auto ping = decode_ping(encode(Ping{5, -7}));
  ASSERT_TRUE(ping);
  EXPECT_EQ(ping->time_ns, -7);
}

/// Every message cut anywhere, or with a byte too many, is refused.
template <class Decode>
void expect_whole_only(const std::string& bytes, Decode decode) {
  ASSERT_TRUE(decode(bytes).has_value());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(decode(bytes + '\0').has_value());
}

TEST(Messages, AreWholeOrNothing) {
  expect_whole_only(encode(Hello{}), decode_hello);
  expect_whole_only(encode(Claim{1, 2, 3, "job", "name", {}, {}}), decode_claim);
  expect_whole_only(encode(Welcome{"name", {}}), decode_welcome);
  expect_whole_only(encode(EntryRefusal{RefusalKind::other_job, "why"}), decode_refusal);
  expect_whole_only(encode(Put{1, 2, "tag", {0, 1}, "blob"}), decode_put);
  expect_whole_only(encode(FailureNotice{1, "why"}), decode_failure);
  expect_whole_only(encode(Ping{1, 2}), decode_ping);
  expect_whole_only(encode_gathered_id(1) + encode_gathered_body(std::vector<std::string>{"a", "bc"}), decode_gathered);
  PeerInfo peer;
  peer.addresses = {"10.0.0.1", "fe80::1%eth0"};
  peer.cores = std::string("\x03\x00\x10", 3);
  expect_whole_only(encode_peer(peer), decode_peer);
}

TEST(Messages, CountsBeyondTheBytesAreRefusedBeforeAnythingIsAllocated) {
  const std::string put = ByteWriter().u64(1).u64(1).text("tag").u32(0xFFFFFFFF).take();
  EXPECT_FALSE(decode_put(put).has_value());
  const std::string gathered = ByteWriter().u64(1).u8(1).u32(0xFFFFFFFF).take();
  EXPECT_FALSE(decode_gathered(gathered).has_value());
}

TEST(Messages, ProofsDependOnEverything) {
  const Digest nonce = hmac_sha256("n", "1");
  const Claim claim{1, 3, 8, "job", "name", hmac_sha256("n", "2"), {}};
  const Digest code = claim_code("secret", nonce, claim);
  EXPECT_EQ(claim_code("secret", nonce, claim), code);
  EXPECT_NE(claim_code("Secret", nonce, claim), code);
  EXPECT_NE(claim_code("secret", claim.nonce, claim), code);
  EXPECT_NE(welcome_code("secret", nonce, claim, claim.name), code);
  for (int what = 0; what < 6; ++what) {
    Claim other = claim;
    if (what == 0) other.version = 2;
    if (what == 1) other.rank = 4;
    if (what == 2) other.world = 9;
    if (what == 3) other.job = "jo", other.name = "bname";
    if (what == 4) other.name = "other";
    if (what == 5) other.nonce = nonce;
    EXPECT_NE(claim_code("secret", nonce, other), code) << what;
  }
}

}  // namespace
}  // namespace espalier::engine::rendezvous
