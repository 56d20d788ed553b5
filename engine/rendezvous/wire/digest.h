#pragma once

// Tested by: tests/unit/engine/rendezvous/wire/digest_test.cpp

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace espalier::engine::rendezvous {

/// A SHA-256 digest, or as many bytes of anything else.
using Digest = std::array<std::uint8_t, 32>;

/// HMAC-SHA256. Source: RFC 2104, FIPS 180-4.
Digest hmac_sha256(std::string_view key, std::string_view message);

/// Whether both are equal, in a time that does not depend on where they differ.
bool equal_in_constant_time(const Digest& one, const Digest& other);

/// Fresh bytes from the operating system's generator. Errors: unavailable when it has none to give.
Result<Digest> random_digest();

}  // namespace espalier::engine::rendezvous
