#include "engine/rendezvous/wire/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier::engine::rendezvous {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

// Expected values: RFC 4231, sections 4.2 to 4.8, HMAC-SHA-256 (4.6 is the truncated one).
TEST(HmacSha256, TestCase1) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST(HmacSha256, TestCase2) {
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(HmacSha256, TestCase3) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
}

TEST(HmacSha256, TestCase4) {
  std::string key;
  for (char byte = 1; byte <= 25; ++byte) key += byte;
  EXPECT_EQ(hex(hmac_sha256(key, std::string(50, '\xcd'))),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

TEST(HmacSha256, TestCase5Truncated) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0c'), "Test With Truncation")).substr(0, 32),
            "a3b6167473100ee06e0c796c2955552b");
}

TEST(HmacSha256, TestCase6KeyLongerThanABlock) {
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacSha256, TestCase7KeyAndDataLongerThanABlock) {
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "This is a test using a larger than block-size key and a larger than block-size data. "
                            "The key needs to be hashed before being used by the HMAC algorithm.")),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(HmacSha256, EmptyKeyIsNotTheKeyOfTheCallBefore) {
  hmac_sha256("another key", "x");
  // HMAC-SHA-256 of nothing under the empty key, as Python's hmac module and OpenSSL's command give it.
  EXPECT_EQ(hex(hmac_sha256({}, {})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Digests, EqualOnlyWhenAllBytesAre) {
  const Digest one = hmac_sha256("k", "m");
  for (std::size_t i = 0; i < one.size(); ++i) {
    Digest other = one;
    EXPECT_TRUE(equal_in_constant_time(one, other));
    other[i] ^= 1U;
    EXPECT_FALSE(equal_in_constant_time(one, other));
  }
}

TEST(Digests, RandomOnesDiffer) {
  const auto one = random_digest();
  const auto other = random_digest();
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
}

}  // namespace
}  // namespace espalier::engine::rendezvous
