#pragma once

// Tested by: tests/fuzz/fuzz_binary_timeline.cpp

#include <cstdint>
#include <string_view>

namespace espalier {

/// FNV-1a of 64 bits, a byte at a time: the same on every machine. For telling things apart, not against attackers.
/// Source: G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, "The FNV Non-Cryptographic Hash Algorithm",
/// draft-eastlake-fnv.
class Fnv1a {
 public:
  void add(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3U; }
  /// Its eight bytes, the low ones first.
  void add_number(std::uint64_t number) {
    for (unsigned shift = 0; shift < 64; shift += 8) add(static_cast<std::uint8_t>(number >> shift));
  }
  void add_text(std::string_view text) {
    for (const char letter : text) add(static_cast<std::uint8_t>(letter));
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace espalier
