#pragma once

// Tested by: tests/unit/engine/rendezvous/wire/frame_test.cpp

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/rendezvous/wire/digest.h"

namespace espalier::engine::rendezvous {

/// Appends numbers (little-endian) and texts (length first) to a string.
class ByteWriter {
 public:
  ByteWriter& u8(std::uint8_t value) { return number(value, 1); }
  ByteWriter& u32(std::uint32_t value) { return number(value, 4); }
  ByteWriter& u64(std::uint64_t value) { return number(value, 8); }
  ByteWriter& text(std::string_view value);
  ByteWriter& digest(const Digest& value);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  ByteWriter& number(std::uint64_t value, int size);
  std::string bytes_;
};

/// Reads them back. What does not fit turns it bad for good and reads as zero or empty; nothing is allocated for a
/// length before the bytes are seen to be there.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  /// A view into the bytes read. Longer than `limit` is bad.
  std::string_view text(std::size_t limit);
  Digest digest();

  /// What has not been read yet.
  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  [[nodiscard]] bool is_good() const { return is_good_; }
  /// Everything was read, and nothing was bad.
  [[nodiscard]] bool is_done() const { return is_good_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size);
  std::uint64_t number(int size);
  std::string_view rest_;
  bool is_good_ = true;
};

}  // namespace espalier::engine::rendezvous
