#pragma once

// Tested by: tests/unit/engine/rendezvous/wire/frame_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier::engine::rendezvous {

/// The message that a frame carries; messages.h describes each.
enum class FrameType : std::uint8_t {
  hello = 1,
  claim,
  welcome,
  refusal,
  complete,
  put,
  gathered,
  failure,
  goodbye,
  heartbeat,
  ping,
  pong,
};
inline constexpr FrameType last_frame_type = FrameType::pong;

/// One message: eight bytes of header (payload length, type, three zeros), then the payload.
struct Frame {
  FrameType type = FrameType::heartbeat;
  std::string payload;
};

inline constexpr std::size_t frame_header_size = 8;

/// The header of a frame whose payload has that many bytes.
std::string frame_header(FrameType type, std::size_t payload_size);

/// Cuts a stream of bytes into frames. A length past the limit is refused when the header is there, before anything is
/// allocated for it; memory grows only with bytes that came.
class FrameReader {
 public:
  explicit FrameReader(std::size_t largest_payload) : largest_payload_(largest_payload) {}

  /// For the frames from now on.
  void set_largest_payload(std::size_t largest_payload) { largest_payload_ = largest_payload; }
  void append(std::string_view bytes);
  /// Bytes that are part of no frame taken yet.
  [[nodiscard]] std::size_t buffered() const { return buffer_.size() - begin_; }
  /// The next whole frame, or nothing yet. Errors: invalid_input when these are no frames; for good.
  Result<std::optional<Frame>> next();

 private:
  std::size_t largest_payload_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< Bytes before it are used up.
};

}  // namespace espalier::engine::rendezvous
