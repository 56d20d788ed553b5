#include "sweep/row.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "schedule/by_algorithm.h"

namespace espalier::sweep {

bool Row::agrees_with(const Row& other) const {
  return key == other.key && alike == other.alike && figures == other.figures && reason == other.reason;
}

std::string digest_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const int made = EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  ESPALIER_CHECK(made == 1 && length == 32, "SHA-256 gives 32 bytes");
  std::string digits;
  for (std::size_t i = 0; i < 8; ++i) digits += fmt::format("{:02x}", digest[i]);
  return digits;
}

std::string describe(const Key& key) {
  std::string text =
      fmt::format("{}{} at {} B on {}", key.collective, by_algorithm(key.algorithm), key.size.count, key.topology);
  if (!key.matrix.empty()) text += " by the matrix " + key.matrix;
  if (!key.parameters.empty()) text += " with " + key.parameters;
  if (!key.profile.empty()) text += " as " + key.profile;
  if (!key.failure.empty()) text += " without " + key.failure;
  return text;
}

}  // namespace espalier::sweep
