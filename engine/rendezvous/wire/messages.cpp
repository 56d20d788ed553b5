#include "engine/rendezvous/wire/messages.h"

#include <fmt/format.h>

#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/wire/bytes.h"

namespace espalier::engine::rendezvous {
namespace {

constexpr std::string_view magic = "ESPALIER";
constexpr std::uint32_t last_error_code = static_cast<std::uint32_t>(ErrorCode::unavailable);
constexpr std::size_t longest_message = 65536;

bool reads_magic(ByteReader& reader) {
  bool is_equal = true;
  for (const char letter : magic) is_equal &= reader.u8() == static_cast<std::uint8_t>(letter);
  return is_equal && reader.is_good();
}

void write_magic(ByteWriter& writer) {
  for (const char letter : magic) writer.u8(static_cast<std::uint8_t>(letter));
}

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::invalid_input, fmt::format("malformed frame: {}", what));
}

std::string proof_text(std::string_view role, const Digest& hub_nonce, const Claim& claim, std::string_view name) {
  ByteWriter writer;
  writer.text("espalier rendezvous").text(role).u32(claim.version).digest(hub_nonce).digest(claim.nonce);
  return writer.u32(claim.rank).u32(claim.world).text(claim.job).text(name).take();
}

}  // namespace

std::string encode(const Hello& hello) {
  ByteWriter writer;
  write_magic(writer);
  return writer.u32(hello.version).digest(hello.nonce).take();
}

Result<Hello> decode_hello(std::string_view bytes) {
  ByteReader reader(bytes);
  Hello hello;
  if (!reads_magic(reader)) return malformed("hello");
  hello.version = reader.u32();
  hello.nonce = reader.digest();
  if (!reader.is_done()) return malformed("hello");
  return hello;
}

std::string encode(const Claim& claim) {
  ByteWriter writer;
  write_magic(writer);
  writer.u32(claim.version).u32(claim.rank).u32(claim.world).text(claim.job).text(claim.name);
  return writer.digest(claim.nonce).digest(claim.code).take();
}

Result<Claim> decode_claim(std::string_view bytes) {
  ByteReader reader(bytes);
  Claim claim;
  if (!reads_magic(reader)) return malformed("claim");
  claim.version = reader.u32();
  claim.rank = reader.u32();
  claim.world = reader.u32();
  claim.job = reader.text(longest_job);
  claim.name = reader.text(longest_name);
  claim.nonce = reader.digest();
  claim.code = reader.digest();
  if (!reader.is_done()) return malformed("claim");
  return claim;
}

std::string encode(const Welcome& welcome) { return ByteWriter().text(welcome.name).digest(welcome.code).take(); }

Result<Welcome> decode_welcome(std::string_view bytes) {
  ByteReader reader(bytes);
  Welcome welcome;
  welcome.name = reader.text(longest_name);
  welcome.code = reader.digest();
  if (!reader.is_done()) return malformed("welcome");
  return welcome;
}

std::string encode(const EntryRefusal& refusal) {
  return ByteWriter().u32(static_cast<std::uint32_t>(refusal.kind)).text(refusal.text).take();
}

Result<EntryRefusal> decode_refusal(std::string_view bytes) {
  ByteReader reader(bytes);
  EntryRefusal refusal;
  const std::uint32_t kind = reader.u32();
  refusal.text = reader.text(largest_greeting);
  if (!reader.is_done() || kind < 1 || kind > static_cast<std::uint32_t>(RefusalKind::closing)) {
    return malformed("refusal");
  }
  refusal.kind = static_cast<RefusalKind>(kind);
  return refusal;
}

std::string encode(const Put& put) {
  ByteWriter writer;
  writer.u64(put.id).u64(put.timeout_ms).text(put.tag).u32(static_cast<std::uint32_t>(put.members.size()));
  for (const std::uint32_t member : put.members) writer.u32(member);
  return writer.text(put.blob).take();
}

Result<Put> decode_put(std::string_view bytes) {
  ByteReader reader(bytes);
  Put put;
  put.id = reader.u64();
  put.timeout_ms = reader.u64();
  put.tag = reader.text(longest_tag);
  const std::uint32_t count = reader.u32();
  if (!reader.is_good() || count > max_ranks || reader.left() / sizeof(std::uint32_t) < count) return malformed("put");
  put.members.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) put.members.push_back(reader.u32());
  put.blob = reader.text(largest_blob);
  if (!reader.is_done()) return malformed("put");
  return put;
}

std::string encode_gathered_id(std::uint64_t id) { return ByteWriter().u64(id).take(); }

std::string encode_gathered_body(const Result<std::vector<std::string>>& blobs) {
  ByteWriter writer;
  writer.u8(blobs.has_value() ? 1 : 0);
  if (!blobs) {
    const Error& error = blobs.error();
    return writer.u32(static_cast<std::uint32_t>(error.code)).text(error.message).text(error.help).take();
  }
  writer.u32(static_cast<std::uint32_t>(blobs->size()));
  for (const std::string& blob : *blobs) writer.text(blob);
  return writer.take();
}

Result<Gathered> decode_gathered(std::string_view bytes) {
  ByteReader reader(bytes);
  Gathered gathered;
  gathered.id = reader.u64();
  const std::uint8_t is_good = reader.u8();
  const std::uint32_t number = reader.u32();
  if (!reader.is_good() || is_good > 1) return malformed("gathered");
  if (is_good == 0) {
    Error error{ErrorCode::unavailable, std::string(reader.text(longest_message)),
                std::string(reader.text(longest_message))};
    if (!reader.is_done() || number > last_error_code) return malformed("gathered");
    error.code = static_cast<ErrorCode>(number);
    gathered.blobs = tl::unexpected<Error>(std::move(error));
    return gathered;
  }
  // Each blob takes at least its length's four bytes, so a count beyond that is a lie.
  if (number > max_ranks || reader.left() / sizeof(std::uint32_t) < number) return malformed("gathered");
  gathered.blobs->reserve(number);
  for (std::uint32_t i = 0; i < number; ++i) gathered.blobs->emplace_back(reader.text(largest_blob));
  if (!reader.is_done()) return malformed("gathered");
  return gathered;
}

std::string encode(const FailureNotice& notice) {
  return ByteWriter().u32(notice.rank).text(std::string_view(notice.reason).substr(0, longest_reason)).take();
}

Result<FailureNotice> decode_failure(std::string_view bytes) {
  ByteReader reader(bytes);
  FailureNotice notice;
  notice.rank = reader.u32();
  notice.reason = reader.text(longest_reason);
  if (!reader.is_done()) return malformed("failure");
  return notice;
}

std::string encode(const Ping& ping) {
  return ByteWriter().u64(ping.id).u64(static_cast<std::uint64_t>(ping.time_ns)).take();
}

Result<Ping> decode_ping(std::string_view bytes) {
  ByteReader reader(bytes);
  Ping ping;
  ping.id = reader.u64();
  ping.time_ns = static_cast<std::int64_t>(reader.u64());
  if (!reader.is_done()) return malformed("ping");
  return ping;
}

Digest claim_code(std::string_view secret, const Digest& hub_nonce, const Claim& claim) {
  return hmac_sha256(secret, proof_text("newcomer", hub_nonce, claim, claim.name));
}

Digest welcome_code(std::string_view secret, const Digest& hub_nonce, const Claim& claim, std::string_view hub_name) {
  return hmac_sha256(secret, proof_text("hub", hub_nonce, claim, hub_name));
}

}  // namespace espalier::engine::rendezvous
