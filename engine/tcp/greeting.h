#pragma once

// Tested by: tests/faults/unauthenticated_test.cpp

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/rendezvous/wire/digest.h"
#include "engine/tcp/tcp_mesh.h"

namespace espalier::engine {

// How a data connection begins. All three messages have a fixed size, so nothing is allocated for what an
// unauthenticated connection sends: the accepting end greets with a nonce, the connecting end claims a stream and
// proves that it knows the secret, the accepting end proves it too.

inline constexpr std::size_t hello_size = 36;    ///< Four bytes "espd", a nonce.
inline constexpr std::size_t claim_size = 88;    ///< "espd", communicator, src, stream, a nonce, dst, the code.
inline constexpr std::size_t welcome_size = 36;  ///< "espd", the code.

struct StreamClaim {
  ConnectionKey key;
  rendezvous::Digest nonce{};
  std::uint32_t dst =
      0;  ///< The rank that it is for: others may listen on the same port of what has that address here.
};

std::string encode_hello(const rendezvous::Digest& nonce);
std::string encode_claim(const StreamClaim& claim, const rendezvous::Digest& hello_nonce, std::string_view secret);
std::string encode_welcome(const StreamClaim& claim, const rendezvous::Digest& hello_nonce, std::string_view secret);

/// Errors: invalid_input when the bytes are no such message, or the code shows another secret.
Result<rendezvous::Digest> decode_hello(std::string_view bytes);
Result<StreamClaim> decode_claim(std::string_view bytes, const rendezvous::Digest& hello_nonce,
                                 std::string_view secret);
Result<void> decode_welcome(std::string_view bytes, const StreamClaim& claim, const rendezvous::Digest& hello_nonce,
                            std::string_view secret);

}  // namespace espalier::engine
