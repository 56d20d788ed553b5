#pragma once

// Tested by: tests/unit/engine/transport/transport_test.cpp

#include <cstdint>
#include <string>

#include "base/id.h"
#include "base/result.h"
#include "engine/transport/stream_end.h"

namespace espalier::engine {

class Recorder;

/// A wait that holds a call up: which member, and what is expected of it.
struct Stall {
  Rank peer;
  std::string expectation;
  bool is_absent = false;  ///< The member is not in the call at all.
};

/// How a transport carries out a call of one shape by itself, instead of a program that sends and receives on streams:
/// all of it where it reaches all members, else the streams to and from those that it reaches, while the executor
/// serves the rest. One object serves all calls of the shape.
class WholeCall {
 public:
  virtual ~WholeCall() = default;

  /// How far the call has come. `declined`: the program runs instead, on all members that it reaches.
  enum class Progress : std::uint8_t { none, some, done, declined };

  /// Begins a call, and enters it. `call` lives until the call's end; it has no stream. `recorder`: null where nobody
  /// asks for spans. Errors: unavailable.
  virtual Result<void> begin(const StreamCall& call, Recorder* recorder) = 0;
  /// Does what can be done now; sets the call's error where it cannot go on.
  virtual Progress advance() = 0;
  /// After `done`.
  virtual void close() = 0;
  /// Whether it gives the recorder the spans of chunks; else all have that of the call.
  [[nodiscard]] virtual bool records_chunks() const { return false; }

  // Streams of the rank's program that the executor serves, from the first `some` on.
  [[nodiscard]] virtual bool leaves_streams() const { return false; }
  [[nodiscard]] virtual bool leaves_stream(std::uint32_t /*stream*/) const { return false; }
  /// How many ops of such a stream may begin; what they wait for in the program is this object's business.
  [[nodiscard]] virtual std::uint32_t permitted(std::uint32_t /*stream*/) const { return 0; }
  /// So many of them are done.
  virtual void note_done(std::uint32_t /*stream*/, std::uint32_t /*ops*/) {}

  /// Whether a device is at work for it on a queue of its own.
  [[nodiscard]] virtual bool is_device_at_work() const { return false; }
  /// After a call that failed: waits until it touches no memory any more.
  virtual void abandon() {}

  /// How those of a captured call went that are done. Errors: unavailable past the deadline; then none works any more.
  [[nodiscard]] virtual Result<void> check_captured() const { return {}; }

  /// Bytes moved in all calls, about, for who wakes others now and then.
  [[nodiscard]] virtual std::int64_t bytes_moved() const = 0;
  /// Requires: neither done nor declined.
  [[nodiscard]] virtual Stall find_stall() const = 0;
};

}  // namespace espalier::engine
