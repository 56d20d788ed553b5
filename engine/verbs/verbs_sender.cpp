#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/error_text.h"
#include "engine/transport/pinned_buffer.h"
#include "engine/verbs/frame.h"
#include "engine/verbs/verbs_memory.h"
#include "engine/verbs/verbs_stream.h"

namespace espalier::engine {
namespace {

/// How often a sender without an op to send is polled before it announces to the peer that it has entered the call.
constexpr std::uint32_t looks_before_announcing = 16;

class VerbsSender final : public Sender {
 public:
  VerbsSender(const Transport& transport, VerbsDevice& device, std::unique_ptr<QueuePair> pair, FileDescriptor socket,
              std::uint32_t peer)
      : transport_(transport), device_(device), pair_(std::move(pair)), socket_(std::move(socket)), peer_(peer) {}

  bool open(const StreamCall& call) override {
    call_ = &call;
    if (socket_.is_open() && !connect()) return false;
    is_announced_ = false;
    looks_ = 0;
    posted_ = 0;
    waiting_.clear();
    in_use_.clear();
    return true;
  }

  bool post(std::uint32_t index) override {
    const Op& op = call_->op(index);
    const bool is_on_host = call_->is_on_host(op, &Piece::source);
    Posted posted{.op = &op, .index = index};
    if (op.piece_count == 1 && (op.bytes >= min_direct || !is_on_host)) {
      posted.registered = verbs_registration(*call_, call_->pieces(op)->source.place, transport_);
    }
    posted.is_bounced = !is_on_host && posted.registered == nullptr;
    // While one is being sent, the device copies the next.
    if (!flush() && (!posted.is_bounced || waiting_.size() == bounces_.size())) return false;
    if (*call_->error || (posted.is_bounced && !copy_out(posted))) return false;
    waiting_.push_back(posted);
    posted_ = index + 1;
    flush();
    return true;
  }

  std::uint32_t departed() override {
    if (!is_announced_ && waiting_.empty() && ++looks_ > looks_before_announcing && can_write()) announce();
    flush();
    const std::uint32_t sent = posted_ - static_cast<std::uint32_t>(waiting_.size());
    if (in_use_.empty()) return sent;
    look();
    while (!in_use_.empty() && is_taken(in_use_.front())) in_use_.pop_front();
    return in_use_.empty() ? sent : in_use_.front().index;
  }

  void close() override {}

  /// A peer that has all credits has all bytes, acknowledged or not.
  [[nodiscard]] bool is_settled() override {
    device_.poll();
    return pair_->failure() || pair_->is_idle() || pair_->outstanding(frames_) == 0;
  }

 private:
  /// An op whose bytes are not all on their way.
  struct Posted {
    const Op* op = nullptr;
    std::uint32_t index = 0;
    std::int64_t offset = 0;
    const VerbsRegistration* registered = nullptr;  ///< Of its bytes; null: they are copied to slots.
    bool is_bounced = false;                        ///< The device copies them to pinned memory first.
    std::uint64_t mark = 0;                         ///< Behind these copies.
  };

  /// Takes the receiver's address, if it is here.
  bool connect() {
    while (received_ < answer_.size()) {
      const ssize_t got = recv(socket_.get(), answer_.data() + received_, answer_.size() - received_, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) {
        set_broken(got == 0 ? "was closed by it" : "broke: " + error_text(errno));
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
    call_->error->set_broken({ErrorCode::unavailable,
                              fmt::format("the connection to rank {} by {} {}", peer_, device_.name(), what),
                              "see what that rank reports"});
  }

  /// False: the connection is broken.
  bool look() {
    device_.poll();
    const auto& failure = device_.failure() ? device_.failure() : pair_->failure();
    if (failure) set_broken(device_.failure() ? "broke: " + *failure : *failure);
    return !failure;
  }

  bool can_write() { return look() && pair_->has_room() && pair_->outstanding(frames_) < slot_count; }

  void announce() { write({.magic = frame_of_call, .call = *call_->header}, 0, std::nullopt, true); }

  /// Sends the slot, of whose payload so many bytes are filled; `more` are elsewhere.
  void write(const FrameHeader& header, std::size_t filled, const std::optional<ibv_sge>& more, bool is_last) {
    std::memcpy(pair_->slot(frames_), &header, sizeof(header));
    const bool is_signalled = is_last || frames_ % (slot_count / 4) == 0;
    pair_->write_slot(frames_, slot_header + filled, more, is_signalled);
    ++frames_;
    is_announced_ = true;
    *call_->bytes_passed += header.length + std::uint64_t{1};
  }

  [[nodiscard]] PinnedBuffer& bounce_of(const Posted& posted) { return bounces_[posted.index % bounces_.size()]; }

  bool copy_out(Posted& posted) {
    const Op& op = *posted.op;
    if (const auto reserved = bounce_of(posted).reserve(call_->queue->device(), op.bytes); !reserved) {
      call_->error->set(reserved.error());
      return false;
    }
    std::byte* to = bounce_of(posted).data();
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const Piece& piece = call_->pieces(op)[i];
      call_->queue->copy(to, call_->buffers->at(piece.source), static_cast<std::size_t>(piece.length));
      to += piece.length;
    }
    posted.mark = call_->queue->mark();
    return true;
  }

  /// Where the receiver wants the op that is under way; null: in slots. Nothing: it has not said yet.
  std::optional<const CallMemory::Place*> find_target(const Posted& posted) {
    if (posted.registered == nullptr || !may_be_direct(*posted.op)) return nullptr;
    if (pair_->memory().sequence != call_->header->sequence) return std::nullopt;
    const CallMemory::Place& place =
        pair_->memory().places[static_cast<std::size_t>(call_->pieces(*posted.op)->target.place)];
    if (place.is_open == 0) return nullptr;
    if (posted.index >= std::max(call_->stream->initial_credits, pair_->allowed())) return std::nullopt;
    return &place;
  }

  /// True when all that was posted is on its way.
  bool flush() {
    while (!waiting_.empty()) {
      if (!flush(waiting_.front())) return false;
      waiting_.pop_front();
    }
    return true;
  }

  bool flush(Posted& posted) {
    if (posted.is_bounced && !call_->queue->is_done(posted.mark)) return false;
    if (posted.offset == 0) cursor_.begin();
    do {
      if (!can_write()) return false;
      const auto target = find_target(posted);
      if (!target) {
        if (!is_announced_) announce();  // The receiver says where its memory is to who is in the call.
        return false;
      }
      if (*target != nullptr) {
        write_direct(posted, **target);
      } else {
        write_slot(posted);
      }
    } while (posted.offset < posted.op->bytes);
    if (posted.registered != nullptr) in_use_.push_back({posted.index, pair_->posted(), frames_});
    return true;
  }

  [[nodiscard]] FrameHeader header_of(const Posted& posted, std::uint32_t magic, std::int64_t bytes) const {
    return {magic,
            posted.op->transfer.value(),
            posted.op->chunk,
            static_cast<std::uint32_t>(bytes),
            posted.offset,
            posted.op->bytes,
            *call_->header};
  }

  /// The next bytes of the op, where they lie in registered memory.
  [[nodiscard]] ibv_sge registered_bytes(const Posted& posted, std::int64_t bytes) const {
    const std::byte* from = call_->buffers->at(call_->pieces(*posted.op)->source) + posted.offset;
    return {reinterpret_cast<std::uint64_t>(from), static_cast<std::uint32_t>(bytes),
            posted.registered->local_key(device_.rail())};
  }

  void write_direct(Posted& posted, const CallMemory::Place& place) {
    const std::int64_t bytes = std::min(posted.op->bytes - posted.offset, max_direct);
    const auto into = static_cast<std::uint64_t>(call_->pieces(*posted.op)->target.offset + posted.offset);
    pair_->write(registered_bytes(posted, bytes), place.address + into, place.key);
    const FrameHeader header = header_of(posted, frame_of_direct, bytes);
    posted.offset += bytes;
    write(header, 0, std::nullopt, posted.offset == posted.op->bytes);
  }

  void write_slot(Posted& posted) {
    const std::int64_t bytes = frame_payload(posted.op->bytes, posted.offset);
    std::byte* to = pair_->slot(frames_) + slot_header;
    const FrameHeader header = header_of(posted, frame_of_op, bytes);
    std::optional<ibv_sge> more;
    if (posted.registered != nullptr) {
      more = registered_bytes(posted, bytes);
    } else if (posted.is_bounced) {
      std::memcpy(to, bounce_of(posted).data() + posted.offset, static_cast<std::size_t>(bytes));
    } else {
      cursor_.advance(*call_, *posted.op, &Piece::source, bytes, [&](const std::byte* from, std::size_t length) {
        std::memcpy(to, from, length);
        to += length;
      });
    }
    posted.offset += bytes;
    write(header, more ? 0 : static_cast<std::size_t>(bytes), more, posted.offset == posted.op->bytes);
  }

  /// An op whose bytes the device reads where they are, until this piece of work is acknowledged, or the peer has
  /// returned the slots of so many frames: one that leaves then may take the acknowledgement with it.
  struct InUse {
    std::uint32_t index = 0;
    std::uint64_t work = 0;
    std::uint64_t frames = 0;
  };
  [[nodiscard]] bool is_taken(const InUse& op) const {
    return op.work <= pair_->completed() || pair_->outstanding(frames_) <= frames_ - op.frames;
  }

  const Transport& transport_;
  VerbsDevice& device_;
  std::unique_ptr<QueuePair> pair_;
  FileDescriptor socket_;  ///< Until the queue pair is connected.
  std::uint32_t peer_;
  std::array<char, QueuePair::address_size> answer_;
  std::size_t received_ = 0;  ///< Of the answer.
  const StreamCall* call_ = nullptr;
  std::deque<Posted> waiting_;
  PieceCursor cursor_;  ///< Of the first that waits.
  std::deque<InUse> in_use_;
  std::array<PinnedBuffer, 2> bounces_;  ///< In turn, for what neither the processor nor the card can read.
  std::uint64_t frames_ = 0;
  bool is_announced_ = false;
  std::uint32_t looks_ = 0;
  std::uint32_t posted_ = 0;
};

}  // namespace

std::unique_ptr<Sender> make_verbs_sender(const Transport& transport, VerbsDevice& device,
                                          std::unique_ptr<QueuePair> pair, FileDescriptor socket, std::uint32_t peer) {
  return std::make_unique<VerbsSender>(transport, device, std::move(pair), std::move(socket), peer);
}

}  // namespace espalier::engine
