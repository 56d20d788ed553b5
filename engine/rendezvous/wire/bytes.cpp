#include "engine/rendezvous/wire/bytes.h"

#include <algorithm>

namespace espalier::engine::rendezvous {

ByteWriter& ByteWriter::number(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i))));
  return *this;
}

ByteWriter& ByteWriter::text(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
  return *this;
}

ByteWriter& ByteWriter::digest(const Digest& value) {
  bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
  return *this;
}

std::string_view ByteReader::take(std::size_t size) {
  if (!is_good_ || size > rest_.size()) {
    is_good_ = false;
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t ByteReader::number(int size) {
  const std::string_view bytes = take(static_cast<std::size_t>(size));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  return value;
}

std::string_view ByteReader::text(std::size_t limit) {
  const std::uint32_t length = u32();
  if (length > limit) is_good_ = false;
  return take(length);
}

Digest ByteReader::digest() {
  Digest value{};
  const std::string_view bytes = take(value.size());
  std::ranges::transform(bytes, value.begin(), [](char byte) { return static_cast<std::uint8_t>(byte); });
  return value;
}

}  // namespace espalier::engine::rendezvous
