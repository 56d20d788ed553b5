#include "engine/rendezvous/wire/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace espalier::engine::rendezvous {

Digest hmac_sha256(std::string_view key, std::string_view message) {
  Digest digest{};
  unsigned int length = 0;
  // A null key would mean "the key of the call before" to OpenSSL; an empty view may be null.
  const char* key_bytes = key.empty() ? "" : key.data();
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  const auto* made =
      HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), bytes, message.size(), digest.data(), &length);
  ESPALIER_CHECK(made != nullptr && length == digest.size(), "HMAC-SHA256 gives 32 bytes");
  return digest;
}

bool equal_in_constant_time(const Digest& one, const Digest& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Result<Digest> random_digest() {
  Digest digest{};
  if (RAND_bytes(digest.data(), static_cast<int>(digest.size())) != 1) {
    return fail(ErrorCode::unavailable, "the system's random generator gave no bytes", "check that getrandom(2) works");
  }
  return digest;
}

}  // namespace espalier::engine::rendezvous
