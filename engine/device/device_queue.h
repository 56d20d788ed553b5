#pragma once

// Tested by: tests/unit/engine/device/device_test.cpp

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/element.h"
#include "base/result.h"
#include "engine/check/pattern.h"

namespace espalier::engine {

class Device;

/// Copies and sums on a rank's memories, done in the order in which they are given, as on a stream of a GPU. The host
/// does them at once, other devices while the executor goes on. Pointers are what the device can reach; whoever gives
/// work keeps its memory until the work is done.
///
/// One thread at a time gives work, takes marks and drains; `is_done`, `error` and `release` may come from any.
class DeviceQueue {
 public:
  explicit DeviceQueue(Device& device) : device_(device) {}
  virtual ~DeviceQueue() = default;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  [[nodiscard]] Device& device() const { return device_; }

  /// Copies between ranges that do not overlap.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// As `copy`, to memory that nobody here reads soon: it need not go through this core's caches.
  virtual void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) { copy(to, from, bytes); }

  /// Every target = first op sources[0] op sources[1] ..., element by element (engine/reduction/reduce.h). The lists
  /// may change once this returns; what they point to may not.
  virtual void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
                      std::span<const void* const> sources, std::size_t element_count) = 0;

  /// Divides every element by `ranks`.
  virtual void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) = 0;

  /// Writes known data, or compares with it, in the device's memory. False, and nothing is given, where it has no code
  /// for that: then the host does it, on copies.
  virtual bool run_pattern(const PatternCall& /*call*/) { return false; }

  /// Work that is given from now on does not begin before `release` of the ticket that this returns.
  virtual std::uint64_t hold() = 0;
  virtual void release(std::uint64_t ticket) = 0;

  /// A mark behind all work given so far.
  [[nodiscard]] std::uint64_t mark() const { return given_; }
  /// The same; where others give the stream work too (Device::adopt_stream), theirs is before it.
  virtual std::uint64_t mark_stream() { return mark(); }
  /// Whether it is a stream of the caller's that captures what it is given, instead of doing it. Nothing is asked of
  /// such a queue, and no mark is taken, until the capture has ended.
  [[nodiscard]] virtual bool is_capturing() const { return false; }
  /// Whether all work before a mark is done: what it wrote may be read by anyone, what it read may be overwritten.
  /// Moves the work along. Never true of work that failed, nor of what was given after it: see `error`. Cost: a load
  /// where the work is known to be done.
  [[nodiscard]] bool is_done(std::uint64_t mark) {
    return done_.load(std::memory_order_acquire) >= mark || look() >= mark;
  }
  /// Whether work failed. The queue does no more from then on.
  [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  /// Why. Requires: has_failed.
  [[nodiscard]] const Error& error() const { return *error_; }

  /// After a call that failed: drops work that has not begun and waits for the rest. Then nothing that was given
  /// touches memory any more, and all marks are done. Where the rest takes longer, or the device does not say whether
  /// it has ended, the queue fails, marks stay as they are, and the device keeps its memories until the process ends.
  virtual void drain(std::chrono::milliseconds longest) = 0;
  /// What work that is told to stop may take to notice.
  static constexpr std::chrono::milliseconds patience{2000};

 protected:
  /// Moves the work along; how much of what was given is done. Asked while not all of it is.
  virtual std::uint64_t look() = 0;
  /// Counts work that is not done at once.
  void note_given() { ++given_; }
  void note_done(std::uint64_t done) { done_.store(done, std::memory_order_release); }
  void fail_with(Error error) {
    error_ = std::make_unique<const Error>(std::move(error));
    has_failed_.store(true, std::memory_order_release);
  }

 private:
  Device& device_;
  std::uint64_t given_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::unique_ptr<const Error> error_;
};

}  // namespace espalier::engine
