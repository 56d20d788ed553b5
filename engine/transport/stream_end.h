#pragma once

// Tested by: tests/unit/engine/transport/transport_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "engine/device/device_queue.h"
#include "engine/program/rank_program.h"
#include "engine/transport/buffers.h"
#include "engine/transport/call.h"

namespace espalier::engine {

/// Why a call cannot go on: the first error that was set.
class CallError {
 public:
  void set(Error error) {
    if (!error_) error_ = std::move(error);
  }
  /// As `set`, for what may be the trace of a rank that failed: its own reason is better, and may be known soon.
  void set_broken(Error error) {
    if (!error_) is_broken_connection_ = true;
    set(std::move(error));
  }
  [[nodiscard]] const std::optional<Error>& cause() const { return error_; }
  [[nodiscard]] bool is_broken_connection() const { return is_broken_connection_; }
  explicit operator bool() const { return error_.has_value(); }

 private:
  std::optional<Error> error_;
  bool is_broken_connection_ = false;
};

/// What both ends of a stream know of the call that they serve.
struct StreamCall {
  const RankProgram* program = nullptr;
  const Stream* stream = nullptr;
  const CallHeader* header = nullptr;  ///< What this rank called.
  const Buffers* buffers = nullptr;    ///< This rank's memories.
  CallError* error = nullptr;
  std::uint64_t* bytes_passed = nullptr;  ///< Counts what moved of an op that is under way.
  DeviceQueue* queue = nullptr;           ///< What copies to and from this rank's memories.

  [[nodiscard]] const Op& op(std::uint32_t index) const { return program->ops[stream->first_op + index]; }
  [[nodiscard]] const Piece* pieces(const Op& op) const { return program->pieces.data() + op.first_piece; }
  /// Whether the processor may read what the op sends from here (`&Piece::source`), or write what it brings
  /// (`&Piece::target`).
  [[nodiscard]] bool is_on_host(const Op& op, Location Piece::*end) const {
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      if (!buffers->is_on_host(pieces(op)[i].*end)) return false;
    }
    return true;
  }
};

/// The sending end of a stream. Nothing here blocks: what cannot be done now is refused and asked for again. CallError
/// ends the call; afterwards the stream is of no use. Callers' memory is touched through the call's queue, or by the
/// processor where it is on the host.
class Sender {
 public:
  virtual ~Sender() = default;

  /// Begins a call; asked until it is true. The StreamCall lives until the call's end.
  virtual bool open(const StreamCall& call) = 0;
  /// Sends an op, in order; all that it waits for has happened. False: not now.
  virtual bool post(std::uint32_t index) = 0;
  /// Whether the next op's bytes may be written now to where `target` says, instead of posting it; `placed` then
  /// completes it. For results that are computed at the same time.
  [[nodiscard]] virtual bool can_place(std::uint32_t) { return false; }
  /// Where a piece of that op goes; `skipped` is the length of the pieces before it. Good until `can_place` of another.
  [[nodiscard]] virtual std::byte* target(const Piece&, std::int64_t) const { return nullptr; }
  /// Further ops may have been posted since `can_place`, or be on their way to where they go.
  virtual void placed(std::uint32_t) {}

  /// How many ops have left: their bytes at this rank may be overwritten. Also moves what was posted along.
  virtual std::uint32_t departed() = 0;
  /// Ends a call, all of whose ops have departed.
  virtual void close() = 0;
  /// Whether the peer gets what has departed without this end.
  [[nodiscard]] virtual bool is_settled() = 0;
};

/// The receiving end of a stream. An op either is placed by the transport (`places`) or is taken by the executor from
/// where the transport shows it, copied or added, and released.
class Receiver {
 public:
  virtual ~Receiver() = default;

  virtual bool open(const StreamCall& call) = 0;

  /// Whether the transport writes the op's bytes where they belong.
  [[nodiscard]] virtual bool places(std::uint32_t index) const = 0;
  /// For such an op, in order: its target may be written from now on. False: not now.
  virtual bool allow(std::uint32_t index) = 0;
  /// How many of the ops have arrived that were allowed or released. Also moves them along.
  virtual std::uint32_t arrived() = 0;

  /// For other ops, in order: whether all bytes are here. May be asked before those before it are released; who has
  /// room for one only says no.
  virtual bool is_ready(std::uint32_t index) = 0;
  /// Where the bytes of a piece of the op are that was ready last, until it is released; `skipped` is the length of the
  /// pieces before it.
  [[nodiscard]] virtual const std::byte* source(const Piece& piece, std::int64_t skipped) const = 0;
  /// How many of the op's first bytes the transport has put where they belong; the executor takes the rest.
  [[nodiscard]] virtual std::int64_t already_placed(std::uint32_t) const { return 0; }
  /// The bytes were taken.
  virtual void release(std::uint32_t index) = 0;

  virtual void close() = 0;
};

}  // namespace espalier::engine
