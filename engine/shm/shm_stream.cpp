#include <algorithm>
#include <array>
#include <utility>

#include "engine/shm/shm_peer.h"

namespace espalier::engine {
namespace {

constexpr std::uint32_t reduce_stream = 0;
/// From this size on a message drives the staging memory out of the caches, and it is written past them.
constexpr std::int64_t uncached_message_bytes = std::int64_t{8} << 20;

/// How the ops of a call move: `pull`, the destination reads the source's memory; `push`, the source writes the
/// destination's; `halves`, both, the source the first half of each op; `read`, the destination has the system read the
/// source's private memory; `staged`, through memory in between, because what they would touch is private.
enum class CopyMode : std::uint8_t { pull, push, halves, read, staged };

/// From this size on a block that is read by the system is there sooner than one that is staged.
constexpr std::int64_t min_read_bytes = std::int64_t{16} << 10;
/// How many ops are read at once.
constexpr std::uint32_t max_read_ops = 8;

/// From this size on two cores copy an op faster than one.
constexpr std::int64_t halved_op_bytes = std::int64_t{32} << 10;

/// How many of an op's bytes the source copies when both do.
std::int64_t first_half(const Op& op) { return op.bytes < halved_op_bytes ? 0 : op.bytes / 2 / 64 * 64; }

/// What one end of a stream calls with, and whether the other end's device opens memory of its device.
struct CallEnd {
  const SharedCall& call;
  bool is_opened;
  bool is_read;  ///< Its private memory, by the other end.

  /// Whether the other end reaches all that it calls with, or, with counts per peer, what `place` says.
  [[nodiscard]] bool is_reached(Place place) const {
    if (call.header.has_counts == 0) return shares_all(call) && (call.on_device == 0 || is_opened);
    const auto at = static_cast<std::size_t>(place);
    return !call.memories[at].buffer.is_none() && (is_on_host(place) || is_opened);
  }
  [[nodiscard]] bool is_on_host(Place place) const {
    return (call.on_device >> static_cast<unsigned>(place) & 1U) == 0;
  }
};

/// A reduction pulls: the destination reads the source's memory as it adds. Copies from one rank to many (broadcast,
/// scatter) are pulled too, by all destinations side by side. A lone destination of a broadcast shares the work with
/// the source, which may write at once, as the target is written only once and read only after that. Other copies are
/// pushed: the source has just written the data and has them in its cache. Where the memory to be reached is private, a
/// copy takes the other mode; a reduction, and a copy between two private memories, is staged. Memory of a device is
/// private to ranks whose device does not open it.
/// Blocks of calls with counts per peer are read where the system allows it. `bytes`: of the block.
CopyMode copy_mode_of(std::uint32_t number, const CallEnd& source, const CallEnd& destination, std::int64_t bytes) {
  const bool can_pull = source.is_reached(Place::send);
  if (number == reduce_stream) return can_pull ? CopyMode::pull : CopyMode::staged;
  const CollectiveKind kind = source.call.header.kind;
  const bool is_broadcast = kind == CollectiveKind::broadcast;
  const bool is_on_host = source.call.on_device == 0 && destination.call.on_device == 0;
  if (can_pull && is_broadcast && is_on_host && source.call.sender_assists != 0 &&
      destination.is_reached(Place::receive)) {
    return CopyMode::halves;
  }
  if (can_pull && (is_broadcast || kind == CollectiveKind::scatter)) return CopyMode::pull;
  if (destination.is_reached(Place::receive)) return CopyMode::push;
  if (can_pull) return CopyMode::pull;
  const bool is_read = source.call.header.has_counts != 0 && source.is_read && bytes >= min_read_bytes &&
                       source.is_on_host(Place::send) && destination.is_on_host(Place::receive);
  return is_read ? CopyMode::read : CopyMode::staged;
}

/// How many of a call's ops a counter of all calls has reached; ops before `base` are those of earlier calls.
std::uint32_t count_since(std::uint64_t counter, std::uint64_t base, std::uint32_t op_count) {
  return counter <= base ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(counter - base, op_count));
}

/// A counter of the other end; read again only when what is known of it does not do.
class SeenCounter {
 public:
  explicit SeenCounter(const std::atomic<std::uint64_t>& counter) : counter_(&counter) {}
  bool reaches(std::uint64_t value) {
    if (seen_ >= value) return true;
    seen_ = counter_->load(std::memory_order_acquire);
    return seen_ >= value;
  }
  std::uint64_t read() { return seen_ = counter_->load(std::memory_order_acquire); }

 private:
  const std::atomic<std::uint64_t>* counter_;
  std::uint64_t seen_ = 0;
};

/// The peer's memories in this call; false, with the error set, when they cannot be had.
bool map_memories(ShmPeer& peer, const StreamCall& call, MappedBuffers& theirs) {
  const std::uint64_t sequence = call.header->sequence;
  const auto mapped = call.program->has_counts ? peer.map_for_blocks(sequence) : peer.map_memories(sequence);
  if (mapped) theirs = *mapped;
  if (!mapped) call.error->set_broken(mapped.error());
  return mapped.has_value();
}

/// How many ops of a stream the device copies out at a time.
constexpr std::uint32_t max_copies = 8;

class ShmSender final : public Sender {
 public:
  ShmSender(ShmPeer& peer, std::uint32_t number)
      : peer_(peer),
        stream_number_(number),
        own_(peer.own_stream(number)),
        received_(peer.their_stream(number).received) {}
  ~ShmSender() override {
    if (!staging_.id.is_none()) peer_.domain().free(staging_.id);
  }

  bool open(const StreamCall& call) override { return peer_.has_entered(call) && begin(call); }

  bool post(std::uint32_t index) override {
    if (index - copied_ >= max_copies) return false;
    // Ops in between are being placed: by work that was given before.
    while (given_ < index) marks_[given_++ % max_copies] = queue_->mark();
    if (mode_ == CopyMode::halves) {
      copy_out(call_->op(index), first_half(call_->op(index)));
    } else if (!is_passive()) {
      if (!has_room(index)) return false;
      copy_out(call_->op(index), INT64_MAX);
    }
    marks_[index % max_copies] = is_passive() ? 0 : queue_->mark();
    given_ = index + 1;
    publish_copied();
    return true;
  }

  [[nodiscard]] bool can_place(std::uint32_t index) override { return !is_uncached_ && has_room(index); }

  [[nodiscard]] bool has_room(std::uint32_t index) {
    const std::uint64_t number = base_ + index + 1;
    if (mode_ == CopyMode::push) return index < call_->stream->initial_credits || received_.reaches(number);
    if (is_passive() || mode_ == CopyMode::halves) return false;
    if (number > own_.slot_count && !received_.reaches(number - own_.slot_count)) return false;
    slot_ = staging_.data + (number - 1) % own_.slot_count * own_.slot_bytes;
    return true;
  }

  [[nodiscard]] std::byte* target(const Piece& piece, std::int64_t skipped) const override {
    return mode_ == CopyMode::staged ? slot_ + skipped : theirs_.at(piece.target);
  }

  void placed(std::uint32_t index) override {
    given_ = std::max(given_, index + 1);
    // The queue has done all that was given before, and perhaps more, which the peer then knows of.
    if (index < copied_) return;
    copied_ = index + 1;
    publish();
  }

  std::uint32_t departed() override {
    if (copied_ != given_) publish_copied();
    if (mode_ == CopyMode::push || mode_ == CopyMode::staged) return copied_;
    return count_since(received_.read(), base_, call_->stream->op_count);
  }

  void close() override { base_ += call_->stream->op_count; }

  [[nodiscard]] bool is_settled() override { return received_.reaches(base_) || peer_.has_left(); }

 private:
  /// Whether the peer alone moves the bytes.
  [[nodiscard]] bool is_passive() const { return mode_ == CopyMode::pull || mode_ == CopyMode::read; }

  /// `open`, once the peer has entered.
  bool begin(const StreamCall& call) {
    const std::uint64_t sequence = call.header->sequence;
    mode_ = copy_mode_of(stream_number_, {peer_.own_call(sequence), peer_.opens_ours(), peer_.reads_ours()},
                         {peer_.call(sequence), peer_.opens_theirs(), false}, call.stream->block.bytes);
    const bool writes = mode_ == CopyMode::push || mode_ == CopyMode::halves;
    if (writes && !map_memories(peer_, call, theirs_)) return false;
    if (mode_ == CopyMode::staged && !make_staging(call)) return false;
    call_ = &call;
    queue_ = call.queue;
    given_ = copied_ = 0;
    const bool may_be_uncached = mode_ == CopyMode::staged || (mode_ == CopyMode::push && call.program->has_counts);
    is_uncached_ = may_be_uncached && call.program->message_bytes >= uncached_message_bytes;
    return true;
  }

  /// Gives the queue the copies of an op's first bytes.
  void copy_out(const Op& op, std::int64_t max_bytes) const {
    std::int64_t skipped = 0;
    for (std::uint32_t i = 0; i < op.piece_count && skipped < max_bytes; ++i) {
      const Piece& piece = call_->pieces(op)[i];
      const auto length = static_cast<std::size_t>(std::min(piece.length, max_bytes - skipped));
      const std::byte* from = call_->buffers->at(piece.source);
      if (is_uncached_) {
        queue_->copy_past_caches(target(piece, skipped), from, length);
      } else {
        queue_->copy(target(piece, skipped), from, length);
      }
      skipped += piece.length;
    }
  }

  /// Publishes the copies that are done to the peer.
  void publish_copied() {
    const std::uint32_t before = copied_;
    while (copied_ < given_ && queue_->is_done(marks_[copied_ % max_copies])) ++copied_;
    if (copied_ != before) publish();
  }
  void publish() {
    own_.sent.store(base_ + copied_, std::memory_order_release);
    peer_.mark();
  }

  /// Slots for this call's ops; larger ones replace smaller ones once the peer has taken all that was in those.
  bool make_staging(const StreamCall& call) {
    constexpr std::int64_t line = 64;
    // All staging of the machine's ranks together should stay in the last-level cache. A stream goes round as many
    // slots as that allows: until it comes back to one, the reader's own cache should have let go of it, for to write a
    // line that lies there can be ten times slower.
    constexpr std::int64_t all_staging_bytes = std::int64_t{12} << 20;
    constexpr std::int64_t max_slots = 512;
    const std::int64_t staging_bytes = all_staging_bytes / std::max<std::int64_t>(1, peer_.stream_count());
    const std::int64_t slot = std::max<std::int64_t>(line, (call.program->max_op_bytes + line - 1) / line * line);
    if (!staging_.id.is_none() && slot <= own_.slot_bytes) return true;
    if (!received_.reaches(base_)) return false;
    if (slot > INT32_MAX) {
      call.error->set({ErrorCode::too_large, "a chunk that is staged in shared memory is at most 2 GiB",
                       "use smaller chunks, or registered buffers"});
      return false;
    }
    const std::int64_t count = std::clamp<std::int64_t>(staging_bytes / slot, 2, max_slots);
    if (!staging_.id.is_none()) peer_.domain().free(std::exchange(staging_, {}).id);
    auto memory = peer_.domain().allocate(slot * count);
    if (!memory) {
      call.error->set(memory.error());
      return false;
    }
    staging_ = *memory;
    own_.staging = staging_.id;
    own_.slot_bytes = static_cast<std::uint32_t>(slot);
    own_.slot_count = static_cast<std::uint32_t>(count);
    return true;
  }

  ShmPeer& peer_;
  std::uint32_t stream_number_;
  SharedStream& own_;
  SeenCounter received_;
  SharedDomain::Allocation staging_;
  std::byte* slot_ = nullptr;  ///< Of the next op.
  const StreamCall* call_ = nullptr;
  CopyMode mode_ = CopyMode::staged;
  bool is_uncached_ = false;
  MappedBuffers theirs_;
  std::uint64_t base_ = 0;  ///< Ops of earlier calls.
  DeviceQueue* queue_ = nullptr;
  std::uint32_t given_ = 0;                        ///< Ops whose copies the queue has been given.
  std::uint32_t copied_ = 0;                       ///< Of those, ops that it has copied and published to the peer.
  std::array<std::uint64_t, max_copies> marks_{};  ///< Of ops between the two, by index modulo their number.
};

class ShmReceiver final : public Receiver {
 public:
  ShmReceiver(ShmPeer& peer, std::uint32_t number)
      : peer_(peer),
        stream_number_(number),
        own_(peer.own_stream(number)),
        their_stream_(peer.their_stream(number)),
        sent_(their_stream_.sent) {}

  bool open(const StreamCall& call) override { return peer_.has_entered(call) && begin(call); }

  [[nodiscard]] bool places(std::uint32_t) const override { return mode_ == CopyMode::push || mode_ == CopyMode::read; }

  bool allow(std::uint32_t index) override {
    if (mode_ == CopyMode::read && !read(index)) return false;
    release(index);
    return true;
  }

  std::uint32_t arrived() override {
    has_read_ = false;
    if (mode_ != CopyMode::push) return released_;
    return count_since(sent_.read(), base_, call_->stream->op_count);
  }

  bool is_ready(std::uint32_t index) override {
    const std::uint64_t number = base_ + index + 1;
    if (mode_ == CopyMode::pull && index < call_->stream->initial_credits) return true;
    if (!sent_.reaches(number)) return false;
    if (mode_ == CopyMode::staged) {
      if (slots_ == nullptr) {
        const auto mapped = peer_.domain().map(peer_.place().rank, their_stream_.staging);
        if (!mapped) {
          call_->error->set_broken(mapped.error());
          return false;
        }
        slots_ = *mapped;
      }
      slot_ = slots_ + (number - 1) % their_stream_.slot_count * their_stream_.slot_bytes;
    }
    return true;
  }

  [[nodiscard]] const std::byte* source(const Piece& piece, std::int64_t skipped) const override {
    return mode_ == CopyMode::staged ? slot_ + skipped : theirs_.at(piece.source);
  }

  [[nodiscard]] std::int64_t already_placed(std::uint32_t index) const override {
    return mode_ == CopyMode::halves ? first_half(call_->op(index)) : 0;
  }

  void release(std::uint32_t index) override {
    own_.received.store(base_ + index + 1, std::memory_order_release);
    peer_.mark();
    released_ = index + 1;
  }

  void close() override { base_ += call_->stream->op_count; }

 private:
  /// A few ops in a row at once, as each asks the system anew whether it may; then the other streams have their turns.
  /// False: later, or never, with the error set.
  bool read(std::uint32_t index) {
    if (index < read_) return true;
    if (has_read_) return false;
    has_read_ = true;
    // The ops of a block follow each other at both ends.
    const std::uint32_t end = std::min(index + max_read_ops, call_->stream->op_count);
    std::int64_t bytes = 0;
    for (std::uint32_t i = index; i < end; ++i) bytes += call_->op(i).bytes;
    const Piece& first = call_->pieces(call_->op(index))[0];
    const auto done =
        peer_.read_block(call_->header->sequence, first.source.offset, call_->buffers->at(first.target), bytes);
    if (!done) {
      call_->error->set_broken(done.error());
      return false;
    }
    read_ = end;
    *call_->bytes_passed += static_cast<std::uint64_t>(bytes);
    return true;
  }

  /// `open`, once the peer has entered.
  bool begin(const StreamCall& call) {
    const std::uint64_t sequence = call.header->sequence;
    mode_ = copy_mode_of(stream_number_, {peer_.call(sequence), peer_.opens_theirs(), peer_.reads_theirs()},
                         {peer_.own_call(sequence), peer_.opens_ours(), false}, call.stream->block.bytes);
    const bool reads = mode_ == CopyMode::pull || mode_ == CopyMode::halves;
    if (reads && !map_memories(peer_, call, theirs_)) return false;
    call_ = &call;
    slots_ = nullptr;
    released_ = 0;
    read_ = 0;
    return true;
  }

  ShmPeer& peer_;
  std::uint32_t stream_number_;
  SharedStream& own_;
  const SharedStream& their_stream_;
  SeenCounter sent_;
  const StreamCall* call_ = nullptr;
  CopyMode mode_ = CopyMode::staged;
  MappedBuffers theirs_;
  std::uint32_t read_ = 0;            ///< Ops of which the bytes are here.
  bool has_read_ = false;             ///< Since the executor last asked what has arrived.
  const std::byte* slots_ = nullptr;  ///< The peer's staging memory, once it is known.
  const std::byte* slot_ = nullptr;   ///< The slot of the op that is ready.
  std::uint64_t base_ = 0;
  std::uint32_t released_ = 0;
};

}  // namespace

std::unique_ptr<Sender> make_shm_sender(ShmPeer& peer, std::uint32_t number) {
  return std::make_unique<ShmSender>(peer, number);
}

std::unique_ptr<Receiver> make_shm_receiver(ShmPeer& peer, std::uint32_t number) {
  return std::make_unique<ShmReceiver>(peer, number);
}

}  // namespace espalier::engine
