#pragma once

// Tested by: tests/unit/scenario/workload/chakra_test.cpp

#include <cstdint>
#include <optional>
#include <string_view>

namespace espalier::scenario {

/// One field of a protobuf message as it is on the wire.
struct WireField {
  enum class Kind : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  std::uint32_t number = 0;
  Kind kind = Kind::varint;
  std::uint64_t value = 0;  ///< Of numbers; the raw bits of a float or double.
  std::string_view bytes;   ///< Of texts, messages and packed lists.
};

/// Reads the wire form of protobuf messages: fields one after the other, and messages behind their length.
/// Source: protobuf.dev, "Encoding".
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }
  [[nodiscard]] std::size_t position() const { return position_; }

  /// The next field; nothing where the bytes are none.
  std::optional<WireField> field();
  /// The message behind its length; nothing where there is none.
  std::optional<std::string_view> message();
  std::optional<std::uint64_t> varint();

 private:
  std::optional<std::uint64_t> fixed(std::size_t size);

  std::string_view bytes_;
  std::size_t position_ = 0;
};

}  // namespace espalier::scenario
