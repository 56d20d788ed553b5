#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/device.h"

// What every device must do, whenever it does its work. A program that includes this instantiates the suite for a
// device: INSTANTIATE_TEST_SUITE_P(NAME, DeviceConformance, ...), in this namespace.
namespace espalier::engine {

struct DeviceCase {
  const char* name;
  std::function<std::unique_ptr<Device>()> make;
};

/// Values in pages that a device's queues reach.
template <class Value>
class PinnedValues {
 public:
  PinnedValues(Device& device, std::size_t count, Value value) : device_(device), count_(count) {
    const std::size_t bytes = (count * sizeof(Value) + 4095) / 4096 * 4096;
    values_ = static_cast<Value*>(std::aligned_alloc(4096, bytes));
    const auto pinned = device.pin(reinterpret_cast<std::byte*>(values_), static_cast<std::int64_t>(bytes));
    EXPECT_TRUE(pinned) << pinned.error().message;
    std::fill(values_, values_ + count, value);
  }
  ~PinnedValues() {
    device_.unpin(reinterpret_cast<std::byte*>(values_));
    std::free(values_);
  }
  PinnedValues(const PinnedValues&) = delete;
  PinnedValues& operator=(const PinnedValues&) = delete;

  [[nodiscard]] Value* data() { return values_; }
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(values_); }
  [[nodiscard]] std::vector<Value> all() const { return {values_, values_ + count_}; }

 private:
  Device& device_;
  std::size_t count_;
  Value* values_;
};

class DeviceConformance : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    ASSERT_NE(device, nullptr);
    queue = make_queue();
    ASSERT_NE(queue, nullptr);
  }
  std::unique_ptr<DeviceQueue> make_queue() {
    auto made = device->make_queue();
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  /// Looks until the work before the mark is done.
  void await(std::uint64_t mark) { await(*queue, mark); }
  static void await(DeviceQueue& of, std::uint64_t mark) {
    for (int looks = 0; !of.is_done(mark); ++looks) ASSERT_LT(looks, 10'000) << "it never ends";
  }
  static std::byte* bytes(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }

  std::unique_ptr<Device> device = GetParam().make();
  std::unique_ptr<DeviceQueue> queue;
};

TEST_P(DeviceConformance, DoesItsWorkInOrder) {
  PinnedValues<float> a(*device, 1000, 1);
  PinnedValues<float> b(*device, 1000, 2);
  PinnedValues<float> sum(*device, 1000, 0);
  PinnedValues<float> copy(*device, 1000, 0);
  const std::array<void*, 1> targets = {sum.data()};
  const std::array<const void*, 2> sources = {b.data(), b.data()};
  queue->reduce(ElementType::float32, ReduceOperation::sum, targets, a.data(), sources, 1000);  // 1 + 2 + 2
  queue->copy(copy.bytes(), sum.bytes(), 1000 * sizeof(float));
  queue->divide(ElementType::float32, copy.data(), 500, 5);  // The first half becomes 1.
  await(queue->mark());
  EXPECT_EQ(sum.all(), std::vector<float>(1000, 5));
  EXPECT_EQ(copy.all()[0], 1);
  EXPECT_EQ(copy.all()[499], 1);
  EXPECT_EQ(copy.all()[500], 5);
}

TEST_P(DeviceConformance, WritesAResultToManyTargets) {
  PinnedValues<std::int32_t> own(*device, 77, 3);
  PinnedValues<std::int32_t> other(*device, 77, 4);
  PinnedValues<std::int32_t> kept(*device, 77, 0);
  PinnedValues<std::int32_t> forwarded(*device, 77, 0);
  {
    std::array<void*, 2> targets = {kept.data(), forwarded.data()};
    std::array<const void*, 1> sources = {other.data()};
    queue->reduce(ElementType::int32, ReduceOperation::max, targets, own.data(), sources, 77);
    targets = {};  // The lists are the caller's again.
    sources = {};
  }
  await(queue->mark());
  EXPECT_EQ(kept.all(), other.all());
  EXPECT_EQ(forwarded.all(), other.all());
}

TEST_P(DeviceConformance, PassesMarksInTheirOrder) {
  std::vector<float> from(8, 1);
  std::vector<float> first(8, 0);
  std::vector<float> second(8, 0);
  queue->copy(bytes(first), bytes(from), 8 * sizeof(float));
  const std::uint64_t mark = queue->mark();
  queue->copy(bytes(second), bytes(from), 8 * sizeof(float));
  const std::uint64_t last = queue->mark();
  await(last);
  EXPECT_TRUE(queue->is_done(mark));
  EXPECT_EQ(first, from);
  EXPECT_EQ(second, from);
}

/// Of two copies that follow each other the second never happens alone, and none after the device was drained.
TEST_P(DeviceConformance, TouchesNothingOnceItIsDrained) {
  std::vector<float> from(8, 1);
  std::vector<float> to(8, 0);
  queue->copy(bytes(to), bytes(from), 8 * sizeof(float));
  const std::uint64_t mark = queue->mark();
  queue->drain(DeviceQueue::patience);
  std::ranges::fill(to, 9.0F);
  for (int looks = 0; looks < 20; ++looks) EXPECT_TRUE(queue->is_done(mark));
  EXPECT_EQ(to, std::vector<float>(8, 9));
  queue->copy(bytes(to), bytes(from), 8 * sizeof(float));  // It is of use again.
  await(queue->mark());
  EXPECT_EQ(to, from);
}

TEST_P(DeviceConformance, GivesZeroedPages) {
  constexpr std::int64_t size = 3 * 4096;
  const auto memory = device->allocate(size, MemorySpace::host);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % 4096, 0U);
  EXPECT_TRUE(std::all_of(*memory, *memory + size, [](std::byte byte) { return byte == std::byte{0}; }));
  device->release(*memory, size);
  EXPECT_FALSE(device->allocate(std::int64_t{1} << 50, MemorySpace::host));
}

TEST_P(DeviceConformance, CopiesPastTheCachesAsWell) {
  std::vector<float> from(100'000, 3);
  std::vector<float> to(100'000, 0);
  queue->copy_past_caches(bytes(to), bytes(from), 100'000 * sizeof(float));
  await(queue->mark());
  EXPECT_EQ(to, from);
}

/// Who never looks at one queue still sees the end of another's work.
TEST_P(DeviceConformance, HasQueuesThatDoNotWaitForEachOther) {
  std::vector<float> from(8, 1);
  std::vector<float> first(8, 0);
  std::vector<float> second(8, 0);
  const auto other = make_queue();
  queue->copy(bytes(first), bytes(from), 8 * sizeof(float));
  other->copy(bytes(second), bytes(from), 8 * sizeof(float));
  await(*other, other->mark());
  EXPECT_EQ(second, from);
  await(queue->mark());
  EXPECT_EQ(first, from);
}

/// The thread that gives work may wait in giving it, as the host's does.
TEST_P(DeviceConformance, HoldsWorkUntilItIsReleased) {
  std::vector<float> from(8, 1);
  std::vector<float> before(8, 0);
  std::vector<float> after(8, 0);
  std::atomic<bool> is_after_written = false;
  queue->copy(bytes(before), bytes(from), 8 * sizeof(float));
  await(queue->mark());  // What was given before the hold does not wait for it.
  EXPECT_EQ(before, from);
  const std::uint64_t ticket = queue->hold();
  std::thread giver([&] {
    queue->copy(bytes(after), bytes(from), 8 * sizeof(float));
    while (!queue->is_done(queue->mark())) std::this_thread::yield();
    is_after_written.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_after_written.load());
  queue->release(ticket);
  giver.join();
  EXPECT_EQ(after, from);
}

/// Its own memory, where it has such, is reached by its queues alone: there and back again.
TEST_P(DeviceConformance, WorksOnItsOwnMemory) {
  constexpr std::int64_t size = 4096;
  const auto memory = device->allocate(size, MemorySpace::device);
  if (!memory) {
    EXPECT_EQ(memory.error().code, ErrorCode::unsupported) << memory.error().message;
    return;
  }
  PinnedValues<float> values(*device, 16, 2);
  std::vector<float> back(16, 0);
  std::byte* const sum = *memory + 1024;
  queue->copy(*memory, values.bytes(), 16 * sizeof(float));
  const std::array<void*, 1> targets = {sum};
  const std::array<const void*, 1> sources = {values.data()};
  queue->reduce(ElementType::float32, ReduceOperation::sum, targets, *memory, sources, 16);  // 2 + 2
  queue->divide(ElementType::float32, sum, 16, 2);                                           // 2
  queue->reduce(ElementType::float32, ReduceOperation::sum, targets, sum, sources, 16);      // 2 + 2
  queue->copy(bytes(back), sum, 16 * sizeof(float));
  await(queue->mark());
  EXPECT_EQ(back, std::vector<float>(16, 4));
  device->release(*memory, size);
}

/// Where devices open each other's memory: what one wrote the other reads and adds to, where it lies.
TEST_P(DeviceConformance, OpensMemoryOfAnotherOfItsKind) {
  constexpr std::int64_t size = 3 * 4096;
  const auto memory = device->allocate(size, MemorySpace::device);
  if (!memory) return;
  std::byte* const own = *memory + 4096;
  const auto shared = device->share_memory(own, 4096);
  if (shared) {
    EXPECT_LE(shared->size(), Device::max_shared_bytes);
    const std::unique_ptr<Device> other = GetParam().make();
    auto others_queue = *other->make_queue();
    const auto opened = other->open_memory(*shared);
    ASSERT_TRUE(opened) << opened.error().message;
    PinnedValues<float> values(*device, 16, 2);
    PinnedValues<float> added(*other, 16, 3);
    queue->copy(own, values.bytes(), 16 * sizeof(float));
    await(queue->mark());
    void* const target = *opened;
    const void* const source = added.data();
    others_queue->reduce(ElementType::float32, ReduceOperation::sum, std::span(&target, 1), *opened,
                         std::span(&source, 1), 16);
    await(*others_queue, others_queue->mark());
    queue->copy(values.bytes(), own, 16 * sizeof(float));
    await(queue->mark());
    EXPECT_EQ(values.all(), std::vector<float>(16, 5));
    EXPECT_FALSE(other->open_memory("of no device"));
    other->close_memory(*opened);
    others_queue.reset();
  } else {
    EXPECT_EQ(shared.error().code, ErrorCode::unsupported) << shared.error().message;
  }
  device->release(*memory, size);
}

/// Memory for those that the device shares it with: the processor writes, the device reads, and the other way round.
TEST_P(DeviceConformance, SharesPinnedMemoryWithTheProcessor) {
  constexpr std::int64_t size = 2 * 4096;
  const auto memory = device->allocate(size, MemorySpace::pinned);
  ASSERT_TRUE(memory) << memory.error().message;
  std::fill(*memory, *memory + 4096, std::byte{7});
  queue->copy(*memory + 4096, *memory, 4096);
  await(queue->mark());
  EXPECT_EQ((*memory)[4096], std::byte{7});
  EXPECT_EQ((*memory)[size - 1], std::byte{7});
  device->release(*memory, size);
}

}  // namespace espalier::engine
