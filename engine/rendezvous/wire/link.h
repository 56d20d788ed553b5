#pragma once

// Tested by: tests/unit/engine/rendezvous/unauthenticated_test.cpp

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "engine/rendezvous/wire/frame.h"

namespace espalier::engine::rendezvous {

/// A non-blocking TCP connection that carries frames. Not thread-safe.
class FrameLink {
 public:
  FrameLink() = default;
  /// Takes over a connected socket: non-blocking, without Nagle's delay.
  FrameLink(FileDescriptor fd, std::size_t largest_payload);

  [[nodiscard]] bool is_open() const { return fd_.is_open(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void set_largest_payload(std::size_t size) { reader_.set_largest_payload(size); }

  /// Queues a frame and sends what the socket takes at once.
  void send(FrameType type, std::string_view payload = {});
  /// The same with a payload in two parts; the second is shared, not copied.
  void send(FrameType type, std::string_view head, std::shared_ptr<const std::string> body);
  /// Sends what the socket takes now. A broken connection shows when it is read.
  void flush();
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }
  /// Sends no more: the other side reads to the end.
  void finish_sending();

  /// Reads what is there, at most so many bytes: one talkative peer must not keep the others waiting. False when the
  /// other side has closed or the connection broke (`end` says how).
  bool fill(std::size_t most = std::size_t{1} << 20U);
  /// Bytes that were read and are not part of a frame that was taken.
  [[nodiscard]] std::size_t buffered() const { return reader_.buffered(); }
  [[nodiscard]] const std::string& end() const { return end_; }
  /// As FrameReader::next.
  Result<std::optional<Frame>> next() { return reader_.next(); }

  void close() { fd_.reset(); }

 private:
  FileDescriptor fd_;
  FrameReader reader_{0};
  std::deque<std::shared_ptr<const std::string>> unsent_;
  std::size_t sent_ = 0;  ///< Bytes of the first of `unsent_`.
  std::string end_;
};

/// The numeric address of a socket's near or far end; empty when it has none.
enum class SocketEnd { near, far };
std::string socket_address(int fd, SocketEnd end);

}  // namespace espalier::engine::rendezvous
