#pragma once

#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/file_descriptor.h"
#include "engine/executor/execution.h"
#include "engine/tcp/tcp_stream.h"

namespace espalier::test {

/// Two ends of a connection within this process.
inline std::array<FileDescriptor, 2> connected_pair() {
  std::array<int, 2> fds{};
  ESPALIER_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) == 0,
                 "a pair of sockets");
  return {FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

/// A broadcast from one rank to another over sockets, one end of which each object is. Whoever holds the other socket
/// may do to the bytes what it likes.
class BroadcastEnd {
 public:
  BroadcastEnd(std::uint32_t rank, FileDescriptor socket, std::size_t bytes, std::size_t chunk, bool checksum)
      : data(bytes) {
    Schedule schedule(*make_collective(CollectiveKind::broadcast, 2, Rank(0)), "pair", "test");
    schedule.units = 1;
    schedule.slices.push_back({0, 1, {}, {}});
    schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), {}), SliceId(0), 1, Action::copy, ChannelId(0));
    const auto layout = Layout::make(schedule, Bytes{static_cast<std::int64_t>(bytes)}, 1);
    ESPALIER_CHECK(layout.has_value(), "a broadcast has a layout");
    auto program = engine::compile(schedule, *layout, {Bytes{static_cast<std::int64_t>(chunk)}}, Rank(rank),
                                   [](const Transfer&) { return 0U; });
    ESPALIER_CHECK(program.has_value(), "a broadcast compiles");
    program_ = std::move(*program);
    engine::StreamEnds ends;
    if (rank == 0) {
      sender_ = engine::make_tcp_sender(std::move(socket), 1, {checksum});
      ends.sender = sender_.get();
    } else {
      receiver_ = engine::make_tcp_receiver(std::move(socket), 1, 0);
      ends.receiver = receiver_.get();
    }
    execution_ = std::make_unique<engine::Execution>(program_, std::vector<engine::StreamEnds>{ends}, *queue_);
  }

  void begin(std::uint64_t sequence) {
    engine::CallHeader header;
    header.sequence = sequence;
    header.count = data.size();
    header.kind = CollectiveKind::broadcast;
    header.type = ElementType::uint8;
    engine::Buffers buffers;
    buffers.base = {data.data(), data.data(), nullptr};
    execution_->begin(header, buffers, nullptr);
  }
  /// As far as it goes.
  void advance() {
    while (!execution_->call_error() && !execution_->is_done() && execution_->advance()) {
    }
  }
  [[nodiscard]] bool is_done() const { return execution_->is_done() && !execution_->call_error(); }
  void close() { execution_->close(); }
  /// What went wrong; empty when nothing did.
  [[nodiscard]] std::string call_error() const {
    return execution_->call_error() ? execution_->call_error().cause()->message : std::string();
  }

  std::vector<std::byte> data;

 private:
  engine::HostDevice device_;
  std::unique_ptr<engine::DeviceQueue> queue_ = std::move(*device_.make_queue());
  engine::RankProgram program_;
  std::unique_ptr<engine::Sender> sender_;
  std::unique_ptr<engine::Receiver> receiver_;
  std::unique_ptr<engine::Execution> execution_;
};

}  // namespace espalier::test
