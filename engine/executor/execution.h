#pragma once

// Tested by: tests/unit/engine/communicator/live_groups_test.cpp

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/executor/recorder.h"
#include "engine/program/rank_program.h"
#include "engine/transport/stream_end.h"
#include "engine/transport/whole_call.h"

namespace espalier::engine {

/// The ends of a program's streams, in the program's order: a sender or a receiver each.
struct StreamEnds {
  Sender* sender = nullptr;
  Receiver* receiver = nullptr;
};

/// A call under way: walks the program as far as peers and data allow. Allocates nothing once it is made; one of these
/// serves all calls of a program.
class Execution {
 public:
  /// Requires: `program`, the ends and the queue outlive this.
  Execution(const RankProgram& program, std::vector<StreamEnds> ends, DeviceQueue& queue);

  /// Begins a call. `recorder` may be null. Requires: no call under way.
  void begin(const CallHeader& header, const Buffers& buffers, Recorder* recorder);
  /// As `begin`, but a transport carries the call out as a whole, and enters it. Errors: those of WholeCall::begin.
  Result<void> begin_whole(const CallHeader& header, const Buffers& buffers, Recorder* recorder, WholeCall& whole);

  /// Does some of what can be done now. False: nothing moved.
  bool advance();
  [[nodiscard]] bool is_done() const { return unfinished_ == 0; }
  /// Ends a call that is done.
  void close();

  /// Ends the call when the device has failed.
  void check_device();
  /// Whether the device has work left: looking again soon is better than sleeping.
  [[nodiscard]] bool is_device_at_work() const {
    return !queue_.is_done(queue_.mark()) || (whole_ != nullptr && whole_->is_device_at_work());
  }
  [[nodiscard]] std::string_view device_name() const { return queue_.device().name(); }

  [[nodiscard]] const CallError& call_error() const { return error_; }
  [[nodiscard]] const CallHeader& header() const { return header_; }
  /// The message size S; with counts per peer, of this rank.
  [[nodiscard]] std::int64_t message_bytes() const {
    if (program_.has_counts) return program_.message_bytes;
    return static_cast<std::int64_t>(header_.count) * size_of(header_.type);
  }
  [[nodiscard]] std::int64_t bytes_moved() const {
    return bytes_moved_ + (whole_ != nullptr ? whole_->bytes_moved() : 0);
  }
  /// What transports know of the call while it is under way.
  [[nodiscard]] const StreamCall& call() const { return call_; }

  /// Requires: not done.
  [[nodiscard]] Stall find_stall() const;

 private:
  struct End {
    StreamCall call;
    CallHeader header;  ///< Of a program with counts: the call's, with the counts of this pair.
    Sender* sender = nullptr;
    Receiver* receiver = nullptr;
    std::uint32_t next = 0;       ///< The first op that was not begun.
    std::uint32_t done = 0;       ///< Ops that have departed or arrived.
    std::uint32_t in_flight = 0;  ///< A receiver's: those that the device has.
    bool is_open = false;
  };

  /// Of an end, its place in the program's streams.
  [[nodiscard]] std::uint32_t stream_of(const End& end) const {
    return static_cast<std::uint32_t>(&end - ends_.data());
  }
  [[nodiscard]] bool serves_streams() const { return whole_ == nullptr || whole_->leaves_streams(); }
  /// Whether the executor carries the end's stream out, and no whole call.
  [[nodiscard]] bool serves(const End& end) const {
    return end.call.stream->op_count > 0 && (whole_ == nullptr || whole_->leaves_stream(stream_of(end)));
  }
  [[nodiscard]] bool may_begin(const End& end, std::uint32_t index) const;
  /// Finds the last level that streams which keep step may begin now (RankProgram::ahead).
  void move_window();
  void begin_program();
  void set_counts();
  void begin_streams();
  bool advance_whole();
  /// What the schedule would have moved one by one has moved at once.
  void record_whole();
  bool advance_end(End& end);
  bool advance_sender(End& end);
  bool advance_receiver(End& end);
  /// Takes the op at a receiver's head: alone, or with all of its fused reduction. False: not now.
  bool take(End& end, const Op& op);
  struct DeviceWork;
  /// Collects the ops of a fused reduction. False: some are not ready.
  bool find_members(const FusedReduction& fused, DeviceWork& work);
  /// Completes what the device has done. False: nothing.
  bool finish_device_work();
  void finish(const DeviceWork& work);
  void copy_in(const End& end, const Op& op);
  /// Finds the forwarded copies that the fused reduction can write itself.
  void choose_forwards(const FusedReduction& fused, DeviceWork& work);
  void reduce(DeviceWork& work);
  /// When an op of an end began, in the recorder's ticks, for its span.
  void note_begun(const End& end, std::uint32_t index, std::int64_t begin);
  /// `known_now`: the moment now, where it was just read.
  bool note_done(End& end, std::uint32_t done, std::int64_t known_now = 0);
  /// Now in the recorder's ticks; 0 without one.
  [[nodiscard]] std::int64_t moment() const { return recorder_ != nullptr ? recorder_->now() : 0; }
  /// False: there is nothing left of it to begin or to end now.
  bool copy_own_results();
  /// An op that the device has, and how far the giving of a fused reduction has come in it: its bytes may lie in other
  /// pieces than those of the others.
  struct Cursor {
    End* end = nullptr;
    std::uint32_t index = 0;  ///< Of the op in its stream.
    const Op* op = nullptr;
    std::uint32_t piece = 0;    ///< Of the op.
    std::int64_t in_piece = 0;  ///< Bytes of the piece that are done.
    std::int64_t skipped = 0;   ///< Bytes of the pieces before it.

    [[nodiscard]] const Piece& current() const { return end->call.pieces(*op)[piece]; }
    [[nodiscard]] std::int64_t left() const { return current().length - in_piece; }
    void advance(std::int64_t bytes);
  };

  /// What the device has been given: the copy of one op, or a fused reduction.
  struct DeviceWork {
    std::vector<Cursor> members;   ///< Ops that arrive; room for the most.
    std::vector<Cursor> forwards;  ///< Ops that leave with the result.
    std::uint64_t mark = 0;
    std::int64_t begin = 0;
  };
  static constexpr std::size_t max_in_flight = 8;

  const RankProgram& program_;
  DeviceQueue& queue_;
  std::vector<End> ends_;             ///< In the program's order of streams.
  std::vector<std::uint32_t> order_;  ///< Senders first.
  std::uint32_t sender_count_ = 0;
  std::uint32_t last_level_ = UINT32_MAX;
  std::uint32_t next_receiver_ = 0;                  ///< Whose turn it is.
  std::array<DeviceWork, max_in_flight> in_flight_;  ///< In the queue's order, round from `first_in_flight_`.
  std::size_t first_in_flight_ = 0;
  std::size_t in_flight_count_ = 0;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  std::int64_t whole_begin_ = 0;
  std::vector<std::vector<std::int64_t>> begun_;  ///< By end and op, where spans are recorded.

  /// `runs`: it is sure that it carries the call out; streams that it leaves may be opened.
  enum class WholeState : std::uint8_t { begun, runs, done };

  WholeCall* whole_ = nullptr;  ///< What carries the call out instead of the program; null: nothing does.
  WholeState whole_state_ = WholeState::begun;
  StreamCall call_;

  CallHeader header_;
  Buffers buffers_;
  CallError error_;
  Recorder* recorder_ = nullptr;
  std::uint32_t unfinished_ = 0;
  bool owes_own_results_ = false;
  bool copies_own_results_ = false;  ///< The device is at work on them.
  std::uint64_t own_results_mark_ = 0;
  std::int64_t bytes_moved_ = 0;
  std::uint64_t bytes_passed_ = 0;  ///< Through sockets, also of ops under way.
};

}  // namespace espalier::engine
