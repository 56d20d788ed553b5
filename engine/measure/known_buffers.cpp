#include "engine/measure/known_buffers.h"

#include <cstring>
#include <utility>
#include <vector>

#include "engine/device/device.h"

namespace espalier::engine {
namespace {

Result<void> finish_work(DeviceQueue& queue, std::chrono::milliseconds longest) {
  queue.drain(longest);
  if (queue.has_failed()) return tl::unexpected(queue.error());
  return {};
}

Result<void> copy_and_wait(DeviceQueue& queue, void* to, const void* from, std::size_t bytes,
                           std::chrono::milliseconds longest) {
  queue.copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  return finish_work(queue, longest);
}

/// The table of known data in a device's memory, and behind it a count of elements that differ.
class DeviceTable {
 public:
  static Result<DeviceTable> make(DeviceQueue& queue, const KnownData& known) {
    const auto bytes = static_cast<std::int64_t>(known.table.size() + sizeof(std::uint64_t));
    const auto memory = queue.device().allocate(bytes, MemorySpace::device);
    if (!memory) return tl::unexpected(memory.error());
    queue.copy(*memory, known.table.data(), known.table.size());
    return DeviceTable(queue.device(), *memory, bytes);
  }
  DeviceTable(DeviceTable&& other) noexcept
      : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  DeviceTable& operator=(DeviceTable&&) = delete;
  ~DeviceTable() {
    if (memory_ != nullptr) device_.release(memory_, bytes_);
  }

  [[nodiscard]] const unsigned char* elements() const { return reinterpret_cast<const unsigned char*>(memory_); }
  [[nodiscard]] std::uint64_t* differing() const {
    return reinterpret_cast<std::uint64_t*>(memory_ + bytes_ - sizeof(std::uint64_t));
  }

 private:
  DeviceTable(Device& device, std::byte* memory, std::int64_t bytes)
      : device_(device), memory_(memory), bytes_(bytes) {}

  Device& device_;
  std::byte* memory_;
  std::int64_t bytes_;
};

/// Gives the device what it writes or, with `compares`, compares. False where it cannot.
bool give_ranges(DeviceQueue& queue, const DeviceTable& table, const KnownData& known, std::int64_t element_size,
                 void* buffer, bool compares) {
  for (const PatternRange& range : known.ranges) {
    PatternCall call{static_cast<unsigned char*>(buffer) + range.begin * static_cast<std::uint64_t>(element_size),
                     table.elements(),
                     compares ? table.differing() : nullptr,
                     range,
                     known.salt,
                     static_cast<std::uint32_t>(element_size)};
    if (!queue.run_pattern(call)) return false;
  }
  return true;
}

/// Elements of the buffer that differ in a bit, as the device counts them; nothing where it cannot.
Result<std::optional<std::uint64_t>> count_differing(DeviceQueue& queue, const DataCase& data, const KnownData& known,
                                                     const void* receive, std::chrono::milliseconds longest) {
  const auto table = DeviceTable::make(queue, known);
  if (!table) return tl::unexpected(table.error());
  // Compared with, and not written.
  const bool gave = give_ranges(queue, *table, known, size_of(data.type), const_cast<void*>(receive), true);
  std::uint64_t differing = 0;
  if (auto done = copy_and_wait(queue, &differing, table->differing(), sizeof(differing), longest); !done) {
    return tl::unexpected(done.error());
  }
  return gave ? std::optional(differing) : std::nullopt;
}

}  // namespace

Result<void> fill_on_device(DeviceQueue& queue, const DataCase& data, std::uint32_t rank, void* send,
                            std::chrono::milliseconds longest) {
  const KnownData known = sent_data(data, rank);
  if (known.ranges.empty()) return {};
  const auto table = DeviceTable::make(queue, known);
  if (!table) return tl::unexpected(table.error());
  const bool gave = give_ranges(queue, *table, known, size_of(data.type), send, false);
  if (auto done = finish_work(queue, longest); !done || gave) return done;
  std::vector<std::byte> staged(data.send_count(rank) * static_cast<std::size_t>(size_of(data.type)));
  fill_send_buffer(data, rank, staged.data());
  return copy_and_wait(queue, send, staged.data(), staged.size(), longest);
}

Result<CheckResult> check_on_device(DeviceQueue& queue, const DataCase& data, std::uint32_t rank, const void* receive,
                                    std::chrono::milliseconds longest) {
  const KnownData known = expected_data(data, rank);
  if (known.ranges.empty()) return CheckResult{};
  const auto differing = count_differing(queue, data, known, receive, longest);
  if (!differing) return tl::unexpected(differing.error());
  if (*differing == 0) return CheckResult{};
  std::vector<std::byte> staged(data.receive_count(rank) * static_cast<std::size_t>(size_of(data.type)));
  if (auto done = copy_and_wait(queue, staged.data(), receive, staged.size(), longest); !done) {
    return tl::unexpected(done.error());
  }
  return check_receive_buffer(data, rank, staged.data());
}

}  // namespace espalier::engine
