#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/element.h"
#include "base/result.h"
#include "engine/memory/memory.h"

namespace espalier::engine {

/// What works on a rank's memories: it copies and adds. Work is done in the order in which it is given, as on a stream:
/// the host does it at once, others while the executor goes on. Pointers are what the device can reach; whoever gives
/// work keeps its memory until the work is done. Used by one thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  /// "host", ...
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Zeroed memory of whole pages. Errors: unavailable when there is not enough; unsupported for a space that it lacks.
  virtual Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) = 0;
  /// Requires: what `allocate` gave, and no work on it.
  virtual void release(std::byte* data, std::int64_t bytes) = 0;

  /// Copies between ranges that do not overlap.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  /// Every target = first op sources[0] op sources[1] ..., element by element (engine/reduction/reduce.h). The lists
  /// may change once this returns; what they point to may not.
  virtual void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
                      std::span<const void* const> sources, std::size_t element_count) = 0;

  /// Divides every element by `ranks`.
  virtual void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) = 0;

  /// A mark behind all work given so far.
  [[nodiscard]] virtual std::uint64_t mark() = 0;
  /// Whether all work before a mark is done: what it wrote may be read by anyone, what it read may be overwritten.
  /// Marks are passed in their order. Also moves the work along.
  [[nodiscard]] virtual bool is_done(std::uint64_t mark) = 0;
  /// After a call that failed: drops what has not begun and waits for the rest. Nothing that was given touches memory
  /// any more, and all marks are done.
  virtual void drain() = 0;
};

/// The processor itself. Nothing is ever left to do.
class HostDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "host"; }
  Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) override;
  void release(std::byte* data, std::int64_t bytes) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
              std::span<const void* const> sources, std::size_t element_count) override;
  void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) override;
  [[nodiscard]] std::uint64_t mark() override { return 0; }
  [[nodiscard]] bool is_done(std::uint64_t) override { return true; }
  void drain() override {}
};

}  // namespace espalier::engine
