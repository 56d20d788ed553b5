#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/transport/pinned_buffer.h"
#include "engine/transport/transport.h"

namespace espalier::test {

/// What ranks of one process send each other: queues of messages, one for each stream.
class LoopbackWire {
 public:
  /// Group, source, destination (ranks of the job), number.
  using Stream = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Message {
    std::optional<engine::CallHeader> opening;  ///< Of a message that begins a call.
    std::vector<std::byte> bytes;
  };

  void send(const Stream& stream, Message message) {
    const std::lock_guard lock(mutex_);
    queues_[stream].push_back(std::move(message));
  }
  std::optional<Message> receive(const Stream& stream) {
    const std::lock_guard lock(mutex_);
    std::deque<Message>& queue = queues_[stream];
    if (queue.empty()) return std::nullopt;
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::map<Stream, std::deque<Message>> queues_;
};

/// Between ranks of one process, and in no hurry: what was posted is read, and what was allowed is written, some looks
/// later, one stream before or after another as a seed has it.
class LoopbackTransport final : public engine::Transport {
 public:
  using Reaches = std::function<bool(std::uint32_t rank, std::uint32_t other)>;
  LoopbackTransport(std::shared_ptr<LoopbackWire> wire, std::uint32_t rank, std::uint64_t seed, Reaches reaches)
      : wire_(std::move(wire)), rank_(rank), random_(seed * 1000 + rank), reaches_(std::move(reaches)) {}

  [[nodiscard]] std::string_view name() const override { return "loopback"; }
  Result<std::string> open(engine::Device&) override { return std::string("loopback"); }
  Result<engine::Reach> attach(std::uint32_t rank, std::string_view exported) override {
    if (exported == "loopback" && reaches_(rank_, rank)) return engine::Reach{"same process"};
    return fail(ErrorCode::unavailable, "the test keeps them apart");
  }
  Result<std::unique_ptr<engine::GroupTransport>> join(const engine::GroupInfo& group) override;
  [[nodiscard]] bool needs_progress() const override { return true; }
  bool progress() override {
    bool moved = false;
    for (const auto& [end, step] : steps_) {
      if (random_.below(3) == 0) moved |= step();
    }
    return moved;
  }
  [[nodiscard]] bool can_wake() const override { return !steps_.empty(); }
  void sleep(std::chrono::nanoseconds longest) override {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(longest, std::chrono::microseconds(20)));
  }

  [[nodiscard]] LoopbackWire& wire() { return *wire_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  /// What an end does when it is its turn, until it is removed.
  void add(const void* end, std::function<bool()> step) { steps_[end] = std::move(step); }
  void remove(const void* end) { steps_.erase(end); }

 private:
  std::shared_ptr<LoopbackWire> wire_;
  std::uint32_t rank_;
  Random random_;
  Reaches reaches_;
  std::map<const void*, std::function<bool()>> steps_;
};

class LoopbackSender final : public engine::Sender {
 public:
  LoopbackSender(LoopbackTransport& transport, LoopbackWire::Stream stream) : transport_(transport), stream_(stream) {
    transport_.add(this, [this] { return step(); });
  }
  ~LoopbackSender() override { transport_.remove(this); }

  bool open(const engine::StreamCall& call) override {
    call_ = &call;
    posted_ = departed_ = 0;
    is_bouncing_ = false;
    transport_.wire().send(stream_, {*call.header, {}});
    return true;
  }
  bool post(std::uint32_t index) override {
    constexpr std::uint32_t max_under_way = 3;
    if (posted_ - departed_ == max_under_way) return false;
    posted_ = index + 1;
    return true;
  }
  std::uint32_t departed() override { return departed_; }
  void close() override {}
  [[nodiscard]] bool is_settled() override { return posted_ == departed_; }

 private:
  bool step() {
    if (posted_ == departed_) return false;
    const engine::Op& op = call_->op(departed_);
    const bool bounces = !call_->is_on_host(op, &engine::Piece::source);
    if (bounces && !is_bouncing_) {
      copy_out(op);
      return true;
    }
    if (bounces && !call_->queue->is_done(mark_)) return false;
    is_bouncing_ = false;
    LoopbackWire::Message message;
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const engine::Piece& piece = call_->pieces(op)[i];
      const std::byte* from = bounces ? bounce_.data() + message.bytes.size() : call_->buffers->at(piece.source);
      message.bytes.insert(message.bytes.end(), from, from + piece.length);
    }
    transport_.wire().send(stream_, std::move(message));
    ++departed_;
    return true;
  }
  /// To where a thread of the processor can read it.
  void copy_out(const engine::Op& op) {
    ASSERT_TRUE(bounce_.reserve(call_->queue->device(), op.bytes));
    std::byte* to = bounce_.data();
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const engine::Piece& piece = call_->pieces(op)[i];
      call_->queue->copy(to, call_->buffers->at(piece.source), static_cast<std::size_t>(piece.length));
      to += piece.length;
    }
    mark_ = call_->queue->mark();
    is_bouncing_ = true;
  }

  LoopbackTransport& transport_;
  LoopbackWire::Stream stream_;
  const engine::StreamCall* call_ = nullptr;
  engine::PinnedBuffer bounce_;
  bool is_bouncing_ = false;
  std::uint64_t mark_ = 0;
  std::uint32_t posted_ = 0;
  std::uint32_t departed_ = 0;
};

/// Copies to the host are placed by the transport, all else is shown to the executor.
class LoopbackReceiver final : public engine::Receiver {
 public:
  LoopbackReceiver(LoopbackTransport& transport, LoopbackWire::Stream stream) : transport_(transport), stream_(stream) {
    transport_.add(this, [this] { return step(); });
  }
  ~LoopbackReceiver() override { transport_.remove(this); }

  bool open(const engine::StreamCall& call) override {
    const auto message = transport_.wire().receive(stream_);
    if (!message) return false;
    if (!(message->opening == *call.header)) {
      call.error->set({ErrorCode::invalid_input,
                       engine::describe_mismatch(transport_.rank(), *call.header, std::get<1>(stream_),
                                                 message->opening.value_or(engine::CallHeader{})),
                       {}});
      return false;
    }
    call_ = &call;
    allowed_ = arrived_ = 0;
    shown_.reset();
    return true;
  }
  [[nodiscard]] bool places(std::uint32_t index) const override {
    const engine::Op& op = call_->op(index);
    return !op.reduces && call_->is_on_host(op, &engine::Piece::target);
  }
  bool allow(std::uint32_t index) override {
    allowed_ = index + 1;
    return true;
  }
  std::uint32_t arrived() override { return arrived_; }
  bool is_ready(std::uint32_t index) override {
    if (arrived_ != index) return false;  // Copies before it are under way.
    if (!shown_) shown_ = transport_.wire().receive(stream_);
    return shown_.has_value();
  }
  [[nodiscard]] const std::byte* source(const engine::Piece&, std::int64_t skipped) const override {
    return shown_->bytes.data() + skipped;
  }
  void release(std::uint32_t index) override {
    shown_.reset();
    allowed_ = arrived_ = index + 1;
  }
  void close() override {}

 private:
  bool step() {
    if (allowed_ == arrived_) return false;
    const auto message = transport_.wire().receive(stream_);
    if (!message) return false;
    const engine::Op& op = call_->op(arrived_);
    const std::byte* from = message->bytes.data();
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const engine::Piece& piece = call_->pieces(op)[i];
      std::copy_n(from, piece.length, call_->buffers->at(piece.target));
      from += piece.length;
    }
    ++arrived_;
    return true;
  }

  LoopbackTransport& transport_;
  LoopbackWire::Stream stream_;
  const engine::StreamCall* call_ = nullptr;
  std::optional<LoopbackWire::Message> shown_;
  std::uint32_t allowed_ = 0;
  std::uint32_t arrived_ = 0;
};

class LoopbackGroup final : public engine::GroupTransport {
 public:
  LoopbackGroup(LoopbackTransport& transport, engine::GroupInfo info) : transport_(transport), info_(std::move(info)) {}

  [[nodiscard]] std::uint32_t choose_stream(const Schedule&, const Transfer& transfer) const override {
    return transfer.first_slice.value() % 2;
  }
  [[nodiscard]] Bytes default_chunk() const override { return Bytes{4096}; }
  Result<std::unique_ptr<engine::Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                                  std::chrono::steady_clock::time_point) override {
    return std::make_unique<LoopbackSender>(
        transport_, LoopbackWire::Stream{info_.id, transport_.rank(), info_.members[member], stream});
  }
  Result<std::unique_ptr<engine::Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                                   std::chrono::steady_clock::time_point) override {
    return std::make_unique<LoopbackReceiver>(
        transport_, LoopbackWire::Stream{info_.id, info_.members[member], transport_.rank(), stream});
  }

 private:
  LoopbackTransport& transport_;
  engine::GroupInfo info_;
};

inline Result<std::unique_ptr<engine::GroupTransport>> LoopbackTransport::join(const engine::GroupInfo& group) {
  return std::make_unique<LoopbackGroup>(*this, group);
}

}  // namespace espalier::test
