#include "engine/tcp/greeting.h"

#include <cstring>

namespace espalier::engine {
namespace {

constexpr std::string_view magic = "espd";

template <class Number>
void put(std::string& text, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) text.push_back(static_cast<char>((value >> (8 * i)) & 0xFFU));
}

template <class Number>
Number get(std::string_view bytes, std::size_t at) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value |= static_cast<Number>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

std::string_view text_of(const rendezvous::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

rendezvous::Digest digest_at(std::string_view bytes, std::size_t at) {
  rendezvous::Digest digest;
  std::memcpy(digest.data(), bytes.data() + at, digest.size());
  return digest;
}

std::string fields_of(const StreamClaim& claim) {
  std::string fields(magic);
  put(fields, claim.key.communicator);
  put(fields, claim.key.src);
  put(fields, claim.key.stream);
  fields += text_of(claim.nonce);
  put(fields, claim.dst);
  return fields;
}

/// Another role in each code, so that none can be sent back as the other.
rendezvous::Digest code_of(std::string_view role, const StreamClaim& claim, const rendezvous::Digest& hello_nonce,
                           std::string_view secret) {
  return rendezvous::hmac_sha256(secret, std::string(role).append(text_of(hello_nonce)).append(fields_of(claim)));
}

Result<void> check_form(std::string_view bytes, std::size_t size) {
  if (bytes.size() == size && bytes.starts_with(magic)) return {};
  return fail(ErrorCode::invalid_input, "the other end does not speak this protocol");
}

}  // namespace

std::string encode_hello(const rendezvous::Digest& nonce) { return std::string(magic).append(text_of(nonce)); }

std::string encode_claim(const StreamClaim& claim, const rendezvous::Digest& hello_nonce, std::string_view secret) {
  return fields_of(claim).append(text_of(code_of("stream claim", claim, hello_nonce, secret)));
}

std::string encode_welcome(const StreamClaim& claim, const rendezvous::Digest& hello_nonce, std::string_view secret) {
  return std::string(magic).append(text_of(code_of("stream welcome", claim, hello_nonce, secret)));
}

Result<rendezvous::Digest> decode_hello(std::string_view bytes) {
  if (auto formed = check_form(bytes, hello_size); !formed) return tl::unexpected(formed.error());
  return digest_at(bytes, magic.size());
}

Result<StreamClaim> decode_claim(std::string_view bytes, const rendezvous::Digest& hello_nonce,
                                 std::string_view secret) {
  if (auto formed = check_form(bytes, claim_size); !formed) return tl::unexpected(formed.error());
  StreamClaim claim;
  claim.key.communicator = get<std::uint64_t>(bytes, 4);
  claim.key.src = get<std::uint32_t>(bytes, 12);
  claim.key.stream = get<std::uint32_t>(bytes, 16);
  claim.nonce = digest_at(bytes, 20);
  claim.dst = get<std::uint32_t>(bytes, 52);
  if (!rendezvous::equal_in_constant_time(digest_at(bytes, 56), code_of("stream claim", claim, hello_nonce, secret))) {
    return fail(ErrorCode::invalid_input, "the other end has another secret");
  }
  return claim;
}

Result<void> decode_welcome(std::string_view bytes, const StreamClaim& claim, const rendezvous::Digest& hello_nonce,
                            std::string_view secret) {
  if (auto formed = check_form(bytes, welcome_size); !formed) return tl::unexpected(formed.error());
  if (!rendezvous::equal_in_constant_time(digest_at(bytes, magic.size()),
                                          code_of("stream welcome", claim, hello_nonce, secret))) {
    return fail(ErrorCode::invalid_input, "the other end has another secret");
  }
  return {};
}

}  // namespace espalier::engine
