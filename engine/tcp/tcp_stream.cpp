#include "engine/tcp/tcp_stream.h"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/error_text.h"
#include "engine/transport/pinned_buffer.h"

namespace espalier::engine {
namespace {

constexpr std::uint32_t opening_magic = 0x6E706F65;       // "eopn"
constexpr std::uint32_t data_magic = 0x74616465;          // "edat"
constexpr std::uint32_t checked_data_magic = 0x63616465;  // "edac"
constexpr std::size_t max_parts = 64;                     ///< Of one system call.
constexpr std::size_t ahead_bytes = 2048;                 ///< Read beyond what is due: small messages whole.
/// How often a sender without an op to send is polled before it announces to the peer that it has entered the call.
constexpr std::uint32_t patient_looks = 16;

struct TcpFrameHeader {
  std::uint32_t magic = data_magic;
  std::uint32_t checksum = 0;
  std::uint32_t transfer = 0;
  std::uint32_t chunk = 0;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;
};
static_assert(sizeof(TcpFrameHeader) == 32);

struct Opening {
  TcpFrameHeader frame;
  CallHeader call;
};
static_assert(sizeof(Opening) == sizeof(TcpFrameHeader) + sizeof(CallHeader));

/// The parts of memory that a frame still has to go to or come from.
class Parts {
 public:
  void clear() {
    count_ = 0;
    first_ = 0;
  }
  /// Requires: room, see `reserve`.
  void add(const void* data, std::size_t bytes) {
    if (bytes > 0) parts_[count_++] = {const_cast<void*>(data), bytes};
  }
  void reserve(std::size_t count) {
    if (parts_.size() < count) parts_.resize(count);
  }
  [[nodiscard]] bool is_done() const { return first_ == count_; }
  [[nodiscard]] msghdr message() {
    msghdr message{};
    message.msg_iov = parts_.data() + first_;
    message.msg_iovlen = std::min(count_ - first_, max_parts);
    return message;
  }
  /// As `message`, and further bytes to `ahead` where all parts are in it. Requires: room for one part more.
  [[nodiscard]] msghdr message(std::span<std::byte> ahead) {
    parts_[count_] = {ahead.data(), ahead.size()};
    msghdr message{};
    message.msg_iov = parts_.data() + first_;
    message.msg_iovlen = std::min(count_ + 1 - first_, max_parts);
    return message;
  }
  /// Takes what it can from the front of `bytes`; how much.
  std::size_t take(std::span<const std::byte> bytes) {
    std::size_t taken = 0;
    while (taken < bytes.size() && !is_done()) {
      const std::size_t length = std::min(bytes.size() - taken, parts_[first_].iov_len);
      std::memcpy(parts_[first_].iov_base, bytes.data() + taken, length);
      advance(length);
      taken += length;
    }
    return taken;
  }
  /// `bytes` more are done; how many of them lie beyond the parts.
  std::size_t advance(std::size_t bytes) {
    while (bytes > 0 && !is_done()) {
      iovec& part = parts_[first_];
      const std::size_t taken = std::min(bytes, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      bytes -= taken;
      if (part.iov_len == 0) ++first_;
    }
    return bytes;
  }

 private:
  std::vector<iovec> parts_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

std::uint32_t max_pieces(const StreamCall& call) {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < call.stream->op_count; ++i) most = std::max(most, call.op(i).piece_count);
  return most;
}

/// CRC32C; begins with 0.
std::uint32_t extend_checksum(std::uint32_t checksum, const std::byte* data, std::int64_t bytes) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  for (; bytes > 0; bytes -= most, data += most) {
    auto* part = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(data));
    checksum = crc32_iscsi(part, static_cast<int>(std::min(bytes, most)), checksum);
  }
  return checksum;
}

void set_broken(const StreamCall& call, std::uint32_t peer, std::string_view what) {
  call.error->set_broken(
      {ErrorCode::unavailable, fmt::format("the connection to rank {} {}", peer, what), "see what that rank reports"});
}

class TcpSender final : public Sender {
 public:
  TcpSender(FileDescriptor socket, std::uint32_t peer, const TcpOptions& options)
      : socket_(std::move(socket)), peer_(peer), options_(options) {}

  bool open(const StreamCall& call) override {
    call_ = &call;
    parts_.clear();
    parts_.reserve(max_pieces(call) + 2);
    opening_.frame = {opening_magic, 0, 0, 0, sizeof(CallHeader), call.header->sequence};
    opening_.call = *call.header;
    owes_opening_ = true;
    looks_ = 0;
    bouncing_bytes_ = 0;
    posted_ = 0;
    return true;
  }

  bool post(std::uint32_t index) override {
    if (!flush()) return false;
    const Op& op = call_->op(index);
    parts_.clear();
    if (owes_opening_) parts_.add(&opening_, sizeof(opening_));
    owes_opening_ = false;
    header_ = {
        data_magic, 0, op.transfer.value(), op.chunk, static_cast<std::uint64_t>(op.bytes), call_->header->sequence};
    parts_.add(&header_, sizeof(header_));
    if (options_.checksum) header_.magic = checked_data_magic;
    if (call_->is_on_host(op, &Piece::source)) {
      for (std::uint32_t i = 0; i < op.piece_count; ++i) {
        const Piece& piece = call_->pieces(op)[i];
        add_data(call_->buffers->at(piece.source), piece.length);
      }
    } else if (!copy_out(op)) {
      return false;
    }
    posted_ = index + 1;
    flush();
    return true;
  }

  std::uint32_t departed() override {
    if (owes_opening_ && posted_ == 0 && parts_.is_done() && ++looks_ > patient_looks) {
      // The first op has to wait long: the peer should know all the same that this rank is in the call, and in which.
      parts_.clear();
      parts_.add(&opening_, sizeof(opening_));
      owes_opening_ = false;
    }
    if (flush()) return posted_;
    return posted_ == 0 ? 0 : posted_ - 1;
  }
  [[nodiscard]] bool is_settled() override { return true; }

  void close() override {}

 private:
  void add_data(const std::byte* data, std::int64_t bytes) {
    parts_.add(data, static_cast<std::size_t>(bytes));
    if (options_.checksum) header_.checksum = extend_checksum(header_.checksum, data, bytes);
  }

  /// Has the op's bytes, which the socket cannot read, copied to where it can. False, with the error set: no room.
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
    bouncing_bytes_ = op.bytes;
    mark_ = call_->queue->mark();
    return true;
  }

  /// True when all that was posted has been handed to the socket.
  bool flush() {
    if (bouncing_bytes_ > 0) {
      if (!call_->queue->is_done(mark_)) return false;
      add_data(bounce_.data(), std::exchange(bouncing_bytes_, 0));
    }
    while (!parts_.is_done()) {
      const msghdr message = parts_.message();
      const ssize_t sent = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) set_broken(*call_, peer_, "broke: " + error_text(errno));
        return false;
      }
      parts_.advance(static_cast<std::size_t>(sent));
      *call_->bytes_passed += static_cast<std::uint64_t>(sent);
    }
    return true;
  }

  FileDescriptor socket_;
  std::uint32_t peer_;
  TcpOptions options_;
  const StreamCall* call_ = nullptr;
  Opening opening_;
  bool owes_opening_ = false;
  std::uint32_t looks_ = 0;  ///< Of the executor at this sender, in vain.
  TcpFrameHeader header_;
  Parts parts_;
  PinnedBuffer bounce_;              ///< For what the socket cannot read.
  std::int64_t bouncing_bytes_ = 0;  ///< That are being copied there.
  std::uint64_t mark_ = 0;           ///< Of that copy.
  std::uint32_t posted_ = 0;
};

class TcpReceiver final : public Receiver {
 public:
  TcpReceiver(FileDescriptor socket, std::uint32_t rank, std::uint32_t peer)
      : socket_(std::move(socket)), rank_(rank), peer_(peer) {}

  bool open(const StreamCall& call) override {
    if (call_ != &call || !is_opening_) {
      call_ = &call;
      is_opening_ = true;
      parts_.clear();
      parts_.reserve(max_pieces(call) + 3);
      parts_.add(&opening_, sizeof(opening_));
      if (const auto reserved = staging_.reserve(call.queue->device(), call.program->max_op_bytes); !reserved) {
        call.error->set(reserved.error());
        return false;
      }
    }
    if (!fill()) return false;
    if (opening_.frame.magic != opening_magic || opening_.frame.bytes != sizeof(CallHeader)) {
      refuse("what came is no beginning of a call");
      return false;
    }
    if (!(opening_.call == *call.header)) {
      call.error->set({ErrorCode::invalid_input, describe_mismatch(rank_, *call.header, peer_, opening_.call),
                       "call the same collectives with the same arguments in the same order on every rank"});
      return false;
    }
    is_opening_ = false;
    begun_ = 0;
    arrived_ = 0;
    return true;
  }

  [[nodiscard]] bool places(std::uint32_t index) const override {
    const Op& op = call_->op(index);
    return !op.reduces && call_->is_on_host(op, &Piece::target);
  }

  bool allow(std::uint32_t index) override {
    if (begun_ != arrived_) return false;
    begin(index);
    return true;
  }

  std::uint32_t arrived() override {
    if (begun_ > arrived_ && places(arrived_) && fill_and_check()) ++arrived_;
    return arrived_;
  }

  bool is_ready(std::uint32_t index) override {
    if (begun_ <= index) {
      if (begun_ != arrived_) return false;  // The op before is still being placed.
      begin(index);
    }
    return fill_and_check();
  }

  [[nodiscard]] const std::byte* source(const Piece&, std::int64_t skipped) const override {
    return staging_.data() + skipped;
  }

  void release(std::uint32_t) override { ++arrived_; }

  void close() override {}

 private:
  void begin(std::uint32_t index) {
    const Op& op = call_->op(index);
    parts_.clear();
    parts_.add(&header_, sizeof(header_));
    if (!places(index)) {
      parts_.add(staging_.data(), static_cast<std::size_t>(op.bytes));
    } else {
      for (std::uint32_t i = 0; i < op.piece_count; ++i) {
        const Piece& piece = call_->pieces(op)[i];
        parts_.add(call_->buffers->at(piece.target), static_cast<std::size_t>(piece.length));
      }
    }
    begun_ = index + 1;
    is_checked_ = false;
  }

  /// True when the frame that is being read is all here.
  bool fill() {
    ahead_first_ += parts_.take(std::span(ahead_).subspan(ahead_first_, ahead_count_ - ahead_first_));
    while (!parts_.is_done()) {
      msghdr message = parts_.message(ahead_);
      const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
      if (got == 0) {
        set_broken(*call_, peer_, "was closed by it");
        return false;
      }
      if (got < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) set_broken(*call_, peer_, "broke: " + error_text(errno));
        return false;
      }
      ahead_first_ = 0;
      ahead_count_ = parts_.advance(static_cast<std::size_t>(got));
      *call_->bytes_passed += static_cast<std::uint64_t>(got);
    }
    return true;
  }

  bool fill_and_check() {
    if (!fill()) return false;
    if (!is_checked_ && !check(call_->op(begun_ - 1))) return false;
    is_checked_ = true;
    return true;
  }

  bool check(const Op& op) {
    if ((header_.magic != data_magic && header_.magic != checked_data_magic) ||
        header_.call != call_->header->sequence || header_.transfer != op.transfer.value() ||
        header_.chunk != op.chunk || header_.bytes != static_cast<std::uint64_t>(op.bytes)) {
      return refuse(fmt::format(
          "transfer {} chunk {} of {} bytes was due, transfer {} chunk {} of {} bytes of call {} came",
          op.transfer.value(), op.chunk, op.bytes, header_.transfer, header_.chunk, header_.bytes, header_.call));
    }
    if (header_.magic == checked_data_magic && checksum_of(op) != header_.checksum) {
      return refuse(
          fmt::format("the bytes of transfer {} chunk {} changed on the way (CRC32C)", op.transfer.value(), op.chunk));
    }
    return true;
  }

  [[nodiscard]] std::uint32_t checksum_of(const Op& op) const {
    if (!places(begun_ - 1)) return extend_checksum(0, staging_.data(), op.bytes);
    std::uint32_t checksum = 0;
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const Piece& piece = call_->pieces(op)[i];
      checksum = extend_checksum(checksum, call_->buffers->at(piece.target), piece.length);
    }
    return checksum;
  }

  bool refuse(std::string_view why) {
    call_->error->set({ErrorCode::invalid_input, fmt::format("from rank {}: {}", peer_, why),
                       "look at the network between the two ranks, and whether both run the same version"});
    return false;
  }

  FileDescriptor socket_;
  std::uint32_t rank_;
  std::uint32_t peer_;
  const StreamCall* call_ = nullptr;
  bool is_opening_ = false;
  bool is_checked_ = false;
  Opening opening_;
  TcpFrameHeader header_;
  Parts parts_;
  PinnedBuffer staging_;                      ///< Of an op that the executor takes.
  std::array<std::byte, ahead_bytes> ahead_;  ///< What came beyond what was due.
  std::size_t ahead_first_ = 0;
  std::size_t ahead_count_ = 0;
  std::uint32_t begun_ = 0;
  std::uint32_t arrived_ = 0;
};

}  // namespace

std::unique_ptr<Sender> make_tcp_sender(FileDescriptor socket, std::uint32_t peer, const TcpOptions& options) {
  return std::make_unique<TcpSender>(std::move(socket), peer, options);
}

std::unique_ptr<Receiver> make_tcp_receiver(FileDescriptor socket, std::uint32_t rank, std::uint32_t peer) {
  return std::make_unique<TcpReceiver>(std::move(socket), rank, peer);
}

}  // namespace espalier::engine
