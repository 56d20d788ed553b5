#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "engine/check/data_case.h"
#include "engine/communicator/communicator.h"

namespace espalier::test {

/// Looks until a queue has done all that it was given.
inline void await_all(engine::DeviceQueue& queue) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!queue.is_done(queue.mark())) {
    ASSERT_FALSE(queue.has_failed()) << queue.error().message;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it never ends";
  }
}

/// Device memory of a communicator.
class DeviceMemory {
 public:
  DeviceMemory(Communicator& communicator, std::size_t bytes) : communicator_(communicator) {
    const auto memory = communicator.allocate(bytes, engine::MemorySpace::device);
    EXPECT_TRUE(memory) << memory.error().message;
    if (memory) data_ = static_cast<std::byte*>(*memory);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { communicator_.free(data_); }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  Communicator& communicator_;
  std::byte* data_ = nullptr;
};

/// Runs one collective on memory of the rank's device. The caller's queue fills the buffer just before the call and
/// empties it just after: nobody waits for it in between but the call.
inline void run_device_case(Communicator& communicator, const engine::DataCase& data) {
  const auto element = static_cast<std::size_t>(size_of(data.type));
  std::vector<std::byte> sent(data.send_count(communicator.rank()) * element);
  std::vector<std::byte> received(data.receive_count(communicator.rank()) * element);
  engine::fill_send_buffer(data, communicator.rank(), sent.data());
  auto queue = communicator.make_queue();
  ASSERT_TRUE(queue) << queue.error().message;
  const DeviceMemory send(communicator, sent.size());
  const DeviceMemory receive(communicator, received.size());
  (*queue)->copy(send.data(), sent.data(), sent.size());
  CallArguments arguments{data.kind, send.data(), receive.data(), data.count, data.type, data.operation, data.root};
  arguments.queue = queue->get();
  const auto done = communicator.run(arguments);
  ASSERT_TRUE(done) << done.error().message;
  (*queue)->copy(received.data(), receive.data(), received.size());
  await_all(**queue);
  const engine::CheckResult checked = engine::check_receive_buffer(data, communicator.rank(), received.data());
  EXPECT_EQ(checked.wrong, 0U) << to_string(data.kind) << " count " << data.count << " rank " << communicator.rank()
                               << ": element " << checked.first.index << " is " << checked.first.actual << ", not "
                               << checked.first.expected;
}

}  // namespace espalier::test
