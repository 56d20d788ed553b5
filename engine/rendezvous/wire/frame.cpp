#include "engine/rendezvous/wire/frame.h"

#include <fmt/format.h>

#include "engine/rendezvous/wire/bytes.h"

namespace espalier::engine::rendezvous {

std::string frame_header(FrameType type, std::size_t payload_size) {
  return ByteWriter().u32(static_cast<std::uint32_t>(payload_size)).u32(static_cast<std::uint32_t>(type)).take();
}

void FrameReader::append(std::string_view bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < frame_header_size) return std::nullopt;
  ByteReader header(rest.substr(0, frame_header_size));
  const std::uint32_t length = header.u32();
  const std::uint32_t type = header.u32();
  if (type < static_cast<std::uint32_t>(FrameType::hello) || type > static_cast<std::uint32_t>(last_frame_type)) {
    return fail(ErrorCode::invalid_input, fmt::format("a frame of unknown type {:#x}", type));
  }
  if (length > largest_payload_) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a frame of {} bytes where at most {} are taken", length, largest_payload_));
  }
  if (rest.size() - frame_header_size < length) return std::nullopt;
  Frame frame{static_cast<FrameType>(type), std::string(rest.substr(frame_header_size, length))};
  begin_ += frame_header_size + length;
  // Dropping the used part when it outweighs the rest keeps the whole linear.
  if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return frame;
}

}  // namespace espalier::engine::rendezvous
