#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "engine/transport/pinned_buffer.h"
#include "engine/verbs/frame.h"
#include "engine/verbs/verbs_stream.h"

namespace espalier::engine {
namespace {

/// How often a sender without an op to send is polled before it announces to the peer that it has entered the call.
constexpr std::uint32_t looks_before_announcing = 16;

class VerbsSender final : public Sender {
 public:
  VerbsSender(VerbsDevice& device, std::unique_ptr<QueuePair> pair, FileDescriptor socket, std::uint32_t peer)
      : device_(device), pair_(std::move(pair)), socket_(std::move(socket)), peer_(peer) {}

  bool open(const StreamCall& call) override {
    call_ = &call;
    if (socket_.is_open() && !connect()) return false;
    is_announced_ = false;
    looks_ = 0;
    posted_ = 0;
    op_ = nullptr;
    bouncing_ = false;
    return true;
  }

  bool post(std::uint32_t index) override {
    if (!flush()) return false;
    const Op& op = call_->op(index);
    bouncing_ = !call_->is_on_host(op, &Piece::source);
    if (bouncing_ && !copy_out(op)) return false;
    op_ = &op;
    offset_ = 0;
    cursor_.begin();
    posted_ = index + 1;
    flush();
    return true;
  }

  std::uint32_t departed() override {
    if (!is_announced_ && op_ == nullptr && ++looks_ > looks_before_announcing && can_write()) {
      write({.magic = frame_of_call, .call = *call_->header}, 0, true);
    }
    if (flush()) return posted_;
    return posted_ == 0 ? 0 : posted_ - 1;
  }

  void close() override {}

  /// A peer that has all credits has all bytes, acknowledged or not.
  [[nodiscard]] bool is_settled() override {
    device_.poll();
    return pair_->failure() || pair_->is_idle() || credits() == slot_count;
  }

 private:
  /// Takes the receiver's address, if it is here.
  bool connect() {
    while (received_ < answer_.size()) {
      const ssize_t got = recv(socket_.get(), answer_.data() + received_, answer_.size() - received_, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) {
        set_broken(got == 0 ? "was closed by it" : "broke: " + std::generic_category().message(errno));
        return false;
      }
      received_ += static_cast<std::size_t>(got);
    }
    socket_.reset();
    if (auto connected = pair_->connect({answer_.data(), answer_.size()}); !connected) {
      call_->error->set(connected.error());
    }
    return !*call_->error;
  }

  void set_broken(const std::string& what) {
    call_->error->set_broken({ErrorCode::unavailable, fmt::format("the connection to rank {} {}", peer_, what),
                              "see what that rank reports"});
  }

  /// Of the receiver: how many slots there are free. Its notes count those that it has returned.
  [[nodiscard]] std::uint32_t credits() const {
    return slot_count - (static_cast<std::uint32_t>(frames_) - pair_->last_note());
  }

  bool can_write() {
    device_.poll();
    const auto& failure = device_.failure() ? device_.failure() : pair_->failure();
    if (failure) set_broken(device_.failure() ? "broke: " + *failure : *failure);
    return !failure && pair_->has_room() && credits() > 0;
  }

  /// Sends the slot whose payload is filled.
  void write(const FrameHeader& header, std::int64_t bytes, bool is_last) {
    std::memcpy(pair_->slot(frames_), &header, sizeof(header));
    const bool is_signalled = is_last || frames_ % (slot_count / 4) == 0;
    pair_->write_slot(frames_, slot_header + static_cast<std::size_t>(bytes), static_cast<std::uint32_t>(frames_),
                      is_signalled);
    ++frames_;
    is_announced_ = true;
    *call_->bytes_passed += static_cast<std::uint64_t>(bytes) + 1;
  }

  bool copy_out(const Op& op) {
    if (const auto reserved = bounce_.reserve(call_->queue->device(), op.bytes); !reserved) {
      call_->error->set(reserved.error());
      return false;
    }
    std::byte* to = bounce_.data();
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const Piece& piece = call_->pieces(op)[i];
      call_->queue->copy(to, call_->buffers->at(piece.source), static_cast<std::size_t>(piece.length));
      to += piece.length;
    }
    mark_ = call_->queue->mark();
    return true;
  }

  /// True when all of the op is in slots that are on their way.
  bool flush() {
    if (op_ == nullptr) return true;
    if (bouncing_ && !call_->queue->is_done(mark_)) return false;
    do {
      if (!can_write()) return false;
      const std::int64_t bytes = frame_payload(op_->bytes, offset_);
      std::byte* to = pair_->slot(frames_) + slot_header;
      if (bouncing_) {
        std::memcpy(to, bounce_.data() + offset_, static_cast<std::size_t>(bytes));
      } else {
        cursor_.advance(*call_, *op_, &Piece::source, bytes, [&](const std::byte* from, std::size_t length) {
          std::memcpy(to, from, length);
          to += length;
        });
      }
      const FrameHeader header{frame_of_op, op_->transfer.value(), op_->chunk, 0, offset_, op_->bytes, *call_->header};
      offset_ += bytes;
      write(header, bytes, offset_ == op_->bytes);
    } while (offset_ < op_->bytes);
    op_ = nullptr;
    return true;
  }

  VerbsDevice& device_;
  std::unique_ptr<QueuePair> pair_;
  FileDescriptor socket_;  ///< Until the queue pair is connected.
  std::uint32_t peer_;
  std::array<char, QueuePair::address_size> answer_;
  std::size_t received_ = 0;  ///< Of the answer.
  const StreamCall* call_ = nullptr;
  const Op* op_ = nullptr;  ///< That is not all in slots yet.
  std::int64_t offset_ = 0;
  PieceCursor cursor_;
  PinnedBuffer bounce_;  ///< For what the processor cannot read.
  bool bouncing_ = false;
  std::uint64_t mark_ = 0;
  std::uint64_t frames_ = 0;
  bool is_announced_ = false;
  std::uint32_t looks_ = 0;
  std::uint32_t posted_ = 0;
};

}  // namespace

std::unique_ptr<Sender> make_verbs_sender(VerbsDevice& device, std::unique_ptr<QueuePair> pair, FileDescriptor socket,
                                          std::uint32_t peer) {
  return std::make_unique<VerbsSender>(device, std::move(pair), std::move(socket), peer);
}

}  // namespace espalier::engine
