#pragma once

// Tested by: tests/unit/engine/rendezvous/wire/frame_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/rendezvous/wire/digest.h"

namespace espalier::engine::rendezvous {

inline constexpr std::uint32_t protocol_version = 1;
inline constexpr std::size_t longest_job = 128;      ///< Bytes of a job's id.
inline constexpr std::size_t longest_name = 512;     ///< Bytes of "host NAME, process PID".
inline constexpr std::size_t longest_tag = 256;      ///< Bytes of an exchange's tag.
inline constexpr std::size_t longest_reason = 4096;  ///< Bytes of a failure's reason; longer ones are cut.
/// Largest payload of a frame before its sender has authenticated.
inline constexpr std::size_t largest_greeting = 1024;

/// The hub's first frame on a connection: hello.
struct Hello {
  std::uint32_t version = protocol_version;
  Digest nonce{};
};

/// Which rank a connecting process claims to be: frame claim. The code covers all of it and the hub's nonce.
struct Claim {
  std::uint32_t version = protocol_version;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  std::string job;
  std::string name;  ///< "host NAME, process PID".
  Digest nonce{};
  Digest code{};
};

/// The hub's own proof: frame welcome.
struct Welcome {
  std::string name;
  Digest code{};
};

/// Why a newcomer may not join. The number is part of the protocol.
enum class RefusalKind : std::uint32_t {
  wrong_version = 1,
  wrong_secret,
  other_job,
  other_world,
  rank_out_of_range,
  rank_taken,
  closing,  ///< The job is full and ending; try again.
};

/// Frame refusal, from the hub. It carries no proof: whoever can forge it can cut the connection as well.
struct EntryRefusal {
  RefusalKind kind = RefusalKind::wrong_secret;
  std::string text;
};

/// A member's part of an exchange: frame put.
struct Put {
  std::uint64_t id = 0;  ///< The member's own number for the answer.
  std::uint64_t timeout_ms = 0;
  std::string tag;
  std::vector<std::uint32_t> members;
  std::string blob;
};

/// The end of an exchange: frame gathered. Its payload is the id, then a body that is the same for all members.
struct Gathered {
  std::uint64_t id = 0;
  Result<std::vector<std::string>> blobs;
};

/// Frame failure, from the hub or from a member.
struct FailureNotice {
  std::uint32_t rank = 0;
  std::string reason;
};

/// Frames ping (time unused) and pong: the hub's CLOCK_MONOTONIC when it read the ping.
struct Ping {
  std::uint64_t id = 0;
  std::int64_t time_ns = 0;
};

// Bytes and back. Decoding never reads past the bytes; errors: invalid_input for any that no encoder writes.
std::string encode(const Hello& hello);
std::string encode(const Claim& claim);
std::string encode(const Welcome& welcome);
std::string encode(const EntryRefusal& refusal);
std::string encode(const Put& put);
std::string encode(const FailureNotice& notice);
std::string encode(const Ping& ping);
std::string encode_gathered_id(std::uint64_t id);
std::string encode_gathered_body(const Result<std::vector<std::string>>& blobs);

Result<Hello> decode_hello(std::string_view bytes);
Result<Claim> decode_claim(std::string_view bytes);
Result<Welcome> decode_welcome(std::string_view bytes);
Result<EntryRefusal> decode_refusal(std::string_view bytes);
Result<Put> decode_put(std::string_view bytes);
Result<Gathered> decode_gathered(std::string_view bytes);
Result<FailureNotice> decode_failure(std::string_view bytes);
Result<Ping> decode_ping(std::string_view bytes);

/// The proof of a newcomer: HMAC over role, version, both nonces, rank, world, job and name.
Digest claim_code(std::string_view secret, const Digest& hub_nonce, const Claim& claim);
/// The proof of the hub to that newcomer. Another role in it, so that neither proof can be sent back as the other.
Digest welcome_code(std::string_view secret, const Digest& hub_nonce, const Claim& claim, std::string_view hub_name);

}  // namespace espalier::engine::rendezvous
