#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/transport/pinned_buffer.h"
#include "engine/verbs/frame.h"
#include "engine/verbs/verbs_memory.h"
#include "engine/verbs/verbs_stream.h"

namespace espalier::engine {
namespace {

/// How long the last credits may take; without them a sender asks again and again before it is content.
constexpr std::chrono::milliseconds farewell_time{20};

class VerbsReceiver final : public Receiver {
 public:
  VerbsReceiver(const Transport& transport, VerbsDevice& device, std::unique_ptr<QueuePair> pair, std::uint32_t rank,
                std::uint32_t peer)
      : transport_(transport), device_(device), pair_(std::move(pair)), rank_(rank), peer_(peer) {}

  ~VerbsReceiver() override {
    const auto deadline = std::chrono::steady_clock::now() + farewell_time;
    return_slots(1);
    while (!pair_->is_idle() && !pair_->failure() && std::chrono::steady_clock::now() < deadline) {
      if (!device_.poll()) std::this_thread::yield();
    }
  }

  bool open(const StreamCall& call) override {
    call_ = &call;
    const FrameHeader* header = next_frame();
    if (!tell_memory() || header == nullptr) return false;
    if (header->magic != frame_of_call && header->magic != frame_of_op && header->magic != frame_of_direct) {
      return refuse("what came is no beginning of a call");
    }
    if (!(header->call == *call.header)) {
      call.error->set({ErrorCode::invalid_input, describe_mismatch(rank_, *call.header, peer_, header->call),
                       "call the same collectives with the same arguments in the same order on every rank"});
      return false;
    }
    // What the processor takes is taken at once, so that a second one would never fill.
    const auto is_on_host = [&](Place place) { return call.buffers->is_on_host({place, 0}); };
    takes_slots_ = call.queue->device().reaches_unpinned();
    const bool is_taken_at_once = takes_slots_ && is_on_host(Place::receive) && is_on_host(Place::scratch);
    staging_count_ = is_taken_at_once ? 1 : stagings_.size();
    for (std::size_t i = 0; i < staging_count_; ++i) {
      if (const auto reserved = stagings_[i].reserve(call.queue->device(), call.program->max_op_bytes); !reserved) {
        call.error->set(reserved.error());
        return false;
      }
    }
    if (header->magic == frame_of_call) take_slot();
    begun_ = 0;
    arrived_ = 0;
    allowed_ = 0;
    told_allowed_ = 0;
    return true;
  }

  [[nodiscard]] bool places(std::uint32_t index) const override {
    const Op& op = call_->op(index);
    return !op.reduces && (call_->is_on_host(op, &Piece::target) || is_direct(op));
  }

  bool allow(std::uint32_t index) override {
    allowed_ = index + 1;
    return true;
  }

  std::uint32_t arrived() override {
    tell_allowed();
    while (arrived_ < allowed_ && places(arrived_)) {
      if (begun_ == arrived_) begin(arrived_);
      if (!fill()) break;
      ++arrived_;
    }
    return arrived_;
  }

  bool is_ready(std::uint32_t index) override {
    if (begun_ == index) {
      // While the executor takes one from its staging memory, the next comes to the other.
      const bool is_one_taken =
          staging_count_ > 1 && index == arrived_ + 1 && !is_shown_ && !places(arrived_) && !may_be_shown(index);
      if (arrived_ != index && !is_one_taken) return false;
      begin(index);
    }
    if (begun_ != index + 1) return false;  // One before is still being placed.
    return is_shown_ ? check_next(call_->op(index)) : fill();
  }

  [[nodiscard]] const std::byte* source(const Piece&, std::int64_t skipped) const override {
    return (is_shown_ ? pair_->slot(taken_) + slot_header : staging().data()) + skipped;
  }

  void release(std::uint32_t index) override {
    if (is_shown_ && begun_ == index + 1) take_slot();
    ++arrived_;
  }

  void close() override {}

 private:
  [[nodiscard]] bool is_direct(const Op& op) const {
    return may_be_direct(op) && verbs_registration(*call_, call_->pieces(op)->target.place, transport_) != nullptr;
  }

  /// Once in a call that may have direct ops: where this end's memories are. False: not yet.
  bool tell_memory() {
    const std::uint64_t sequence = call_->header->sequence;
    if (told_ == sequence) return true;
    const Op* ops = call_->program->ops.data() + call_->stream->first_op;
    if (std::none_of(ops, ops + call_->stream->op_count, may_be_direct)) return true;
    // Until the sender has sent something, it may not be connected.
    if (pair_->received() == 0 || !pair_->has_room()) return false;
    CallMemory memory{.sequence = sequence, .places = {}};
    for (const Place place : {Place::receive, Place::scratch}) {
      const VerbsRegistration* registered = verbs_registration(*call_, place, transport_);
      if (registered == nullptr) continue;
      const std::int64_t begin = place == Place::receive ? call_->stream->block.offset : 0;
      const auto address = reinterpret_cast<std::uint64_t>(call_->buffers->at({place, begin}));
      memory.places[static_cast<std::size_t>(place)] = {address, registered->remote_key(device_.rail()), 1};
    }
    pair_->tell(memory);
    told_ = sequence;
    return true;
  }

  /// By entering the call this end allows the ops that wait for nothing; the sender is told of the others.
  void tell_allowed() {
    if (told_allowed_ == allowed_ || !pair_->has_room() || pair_->failure()) return;
    bool matters = false;
    for (std::uint32_t i = told_allowed_; i < allowed_; ++i) matters |= is_direct(call_->op(i));
    told_allowed_ = allowed_;
    if (matters) pair_->allow(allowed_);
  }

  void begin(std::uint32_t index) {
    const Op& op = call_->op(index);
    begun_ = index + 1;
    offset_ = 0;
    is_filled_ = false;
    mark_.reset();
    cursor_.begin();
    is_on_host_ = call_->is_on_host(op, &Piece::target);
    is_shown_ = may_be_shown(index);
  }

  /// What a device takes must be pinned, and what has several frames must be put together.
  [[nodiscard]] bool may_be_shown(std::uint32_t index) const {
    const Op& op = call_->op(index);
    return takes_slots_ && !places(index) && op.bytes <= static_cast<std::int64_t>(slot_payload) &&
           call_->is_on_host(op, &Piece::target);
  }

  /// Of the op that was begun last.
  [[nodiscard]] const PinnedBuffer& staging() const { return stagings_[(begun_ - 1) % staging_count_]; }

  /// The header of the frame that is due; null when it is not here, with the error set when it will not come.
  const FrameHeader* next_frame() {
    device_.poll();
    if (pair_->received() == taken_) {
      if (device_.failure())
        set_broken("broke: " + *device_.failure());
      else if (pair_->failure())
        set_broken(*pair_->failure());
      return nullptr;
    }
    return_slots(slot_count / 2);
    return reinterpret_cast<const FrameHeader*>(pair_->slot(taken_));
  }

  bool check_next(const Op& op) {
    const FrameHeader* header = next_frame();
    if (header == nullptr) return false;
    const bool is_direct_frame = header->magic == frame_of_direct;
    const std::int64_t most = is_direct_frame ? max_direct : static_cast<std::int64_t>(slot_payload);
    if ((header->magic != frame_of_op && !(is_direct_frame && is_direct(op))) ||
        (offset_ > 0 && is_direct_frame != was_direct_) || header->length > most ||
        header->length > op.bytes - offset_ || (is_shown_ && header->length != op.bytes) ||
        header->call.sequence != call_->header->sequence || header->transfer != op.transfer.value() ||
        header->chunk != op.chunk || header->bytes != op.bytes || header->offset != offset_) {
      return refuse(
          fmt::format("transfer {} chunk {} of {} bytes was due, transfer {} chunk {} of {} bytes of call {} came",
                      op.transfer.value(), op.chunk, op.bytes, header->transfer, header->chunk, header->bytes,
                      header->call.sequence));
    }
    return true;
  }

  /// Takes the frames of the op that was begun to where they belong; true when it has all.
  bool fill() {
    const Op& op = call_->op(begun_ - 1);
    while (!is_filled_) {
      if (!check_next(op)) return false;
      const auto* header = reinterpret_cast<const FrameHeader*>(pair_->slot(taken_));
      const std::int64_t bytes = header->length;
      const std::byte* from = pair_->slot(taken_) + slot_header;
      was_direct_ = header->magic == frame_of_direct;
      if (was_direct_) {
        // The bytes are there.
      } else if (places(begun_ - 1) && is_on_host_) {
        cursor_.advance(*call_, op, &Piece::target, bytes, [&](std::byte* to, std::size_t length) {
          std::memcpy(to, from, length);
          from += length;
        });
      } else {
        std::memcpy(staging().data() + offset_, from, static_cast<std::size_t>(bytes));
      }
      offset_ += bytes;
      is_filled_ = offset_ == op.bytes;
      *call_->bytes_passed += static_cast<std::uint64_t>(bytes) + 1;
      take_slot();
    }
    return !places(begun_ - 1) || is_on_host_ || was_direct_ || is_copied(op);
  }

  /// Has the device copy the op from staging memory to where it belongs; true when that is done.
  bool is_copied(const Op& op) {
    if (!mark_) {
      cursor_.begin();
      const std::byte* from = staging().data();
      cursor_.advance(*call_, op, &Piece::target, op.bytes, [&](std::byte* to, std::size_t length) {
        call_->queue->copy(to, from, length);
        from += length;
      });
      mark_ = call_->queue->mark();
    }
    return call_->queue->is_done(*mark_);
  }

  void take_slot() {
    ++taken_;
    return_slots(slot_count / 2);
  }

  /// Gives credits, if there are that many to give.
  void return_slots(std::uint64_t least) {
    if (taken_ - returned_ < least || !pair_->has_room() || pair_->failure()) return;
    returned_ = taken_;
    pair_->send_credits(returned_);
  }

  void set_broken(const std::string& what) {
    call_->error->set_broken({ErrorCode::unavailable,
                              fmt::format("the connection to rank {} by {} {}", peer_, device_.name(), what),
                              "see what that rank reports"});
  }

  bool refuse(std::string_view why) {
    call_->error->set({ErrorCode::invalid_input, fmt::format("from rank {}: {}", peer_, why),
                       "look at whether both ranks run the same version"});
    return false;
  }

  const Transport& transport_;
  VerbsDevice& device_;
  std::unique_ptr<QueuePair> pair_;
  std::uint32_t rank_;
  std::uint32_t peer_;
  const StreamCall* call_ = nullptr;
  std::uint64_t taken_ = 0;     ///< Frames.
  std::uint64_t returned_ = 0;  ///< Of them, as credits.
  std::uint64_t told_ = 0;      ///< The call in which the sender knows this end's memories.
  std::uint32_t begun_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint32_t allowed_ = 0;
  std::uint32_t told_allowed_ = 0;
  std::int64_t offset_ = 0;
  PieceCursor cursor_;
  bool takes_slots_ = true;               ///< The call's queue reaches slots, which nobody pinned.
  std::array<PinnedBuffer, 2> stagings_;  ///< In turn, of ops that are neither in their slot nor in their place.
  std::size_t staging_count_ = 1;
  std::optional<std::uint64_t> mark_;  ///< Behind the copies from there, of an op that this end places.
  bool is_on_host_ = false;
  bool was_direct_ = false;
  bool is_shown_ = false;
  bool is_filled_ = false;
};

}  // namespace

std::unique_ptr<Receiver> make_verbs_receiver(const Transport& transport, VerbsDevice& device,
                                              std::unique_ptr<QueuePair> pair, std::uint32_t rank, std::uint32_t peer) {
  return std::make_unique<VerbsReceiver>(transport, device, std::move(pair), rank, peer);
}

}  // namespace espalier::engine
