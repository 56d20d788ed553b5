#include "scenario/workload/chakra/protobuf_wire.h"

namespace espalier::scenario {

std::optional<std::uint64_t> WireReader::varint() {
  constexpr unsigned last_shift = 63;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift <= last_shift && position_ < bytes_.size(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes_[position_++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::fixed(std::size_t size) {
  if (bytes_.size() - position_ < size) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(bytes_[position_ + i])} << (8 * i);
  }
  position_ += size;
  return value;
}

std::optional<std::string_view> WireReader::message() {
  const auto length = varint();
  if (!length || *length > bytes_.size() - position_) return std::nullopt;
  const std::string_view inside = bytes_.substr(position_, *length);
  position_ += *length;
  return inside;
}

std::optional<WireField> WireReader::field() {
  const auto tag = varint();
  if (!tag || *tag >> 32U != 0) return std::nullopt;
  WireField field;
  field.number = static_cast<std::uint32_t>(*tag >> 3U);
  field.kind = static_cast<WireField::Kind>(*tag & 7U);
  if (field.number == 0) return std::nullopt;
  std::optional<std::uint64_t> value;
  switch (field.kind) {
    case WireField::Kind::varint: value = varint(); break;
    case WireField::Kind::fixed64: value = fixed(8); break;
    case WireField::Kind::fixed32: value = fixed(4); break;
    case WireField::Kind::bytes: {
      const auto inside = message();
      if (!inside) return std::nullopt;
      field.bytes = *inside;
      return field;
    }
    default: return std::nullopt;
  }
  if (!value) return std::nullopt;
  field.value = *value;
  return field;
}

}  // namespace espalier::scenario
