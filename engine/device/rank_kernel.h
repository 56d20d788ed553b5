#pragma once

// Tested by: tests/unit/engine/device/device_test.cpp

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/element.h"
#include "base/result.h"
#include "engine/program/rank_program.h"
#include "schedule/chunking.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace espalier::engine {

class DeviceQueue;
class Recorder;

/// Where a rank's kernels run.
struct KernelSite {
  std::uint64_t device = 0;  ///< No other device of the machine has this number.
  std::uint32_t blocks = 0;  ///< That it runs at a time.
};

/// What the device of one rank does in calls of a shape that the devices of all ranks carry out together, in memory
/// that each of them reaches. The host starts it and sees it end; nothing between needs the host. One thread at a time
/// uses it.
class RankKernel {
 public:
  /// Calls of one shape, the same on all ranks but for `self`.
  struct Shape {
    const Schedule& schedule;
    const Layout& layout;
    Pacing pacing;
    std::uint32_t blocks = 1;  ///< The most of a rank.
    Rank self;
    std::chrono::milliseconds deadline{};  ///< Of a call.
    const RankProgram& program;            ///< Of this rank, for `permitted` and `note_done`.
    std::vector<bool> in_kernel = {};      ///< By rank: whether it is of this machine. Empty: all are.
  };
  /// A rank's memories by Place, as this rank's device reaches them.
  using Memories = std::array<std::byte*, 3>;

  virtual ~RankKernel() = default;

  /// How much memory of this rank's device the others' write to say how far they are. Zero at first.
  [[nodiscard]] virtual std::int64_t shared_bytes() const = 0;
  /// By rank: whether it reads or writes that rank's memories, which stay until it has. Others may go before it begins.
  [[nodiscard]] virtual const std::vector<bool>& reached() const = 0;
  /// Where that memory of every rank is for this rank's device. Once, before the first call. Errors: those of the
  /// device.
  virtual Result<void> attach(std::span<std::byte* const> shared) = 0;

  /// Gives a call to a queue of the device. Averages are left as sums. `memories`: of those that it reaches. `records`:
  /// it keeps when it did what, for `record`. Requires: the call before is done; the memories stay until this one is.
  /// Errors: too_large where the device cannot run it; those of the device.
  virtual Result<void> launch(DeviceQueue& queue, ElementType type, ReduceOperation operation,
                              std::span<const Memories> memories, bool records) = 0;
  /// As `launch`, into the graph for which a queue captures: on the same memories, as often as the graph is launched,
  /// also before the call before is done everywhere. Such a kernel has no other calls. It stops where it waits when
  /// `stops_with` is drained. Errors: as `launch`.
  virtual Result<void> capture(DeviceQueue& capturing, DeviceQueue& stops_with, ElementType type,
                               ReduceOperation operation, std::span<const Memories> memories) = 0;
  /// How the calls of the graph went that are done. Errors: as `check`.
  [[nodiscard]] virtual Result<void> check_captured() const = 0;

  // Streams of Shape::program to and from ranks of other machines, which the host serves while the kernel runs.
  /// How many ops of the stream, from its first, the host may begin in the call that was launched last. Never less than
  /// before.
  [[nodiscard]] virtual std::uint32_t permitted(std::uint32_t stream) const = 0;
  /// Tells the kernel that so many of them are done: have left, or lie where they go.
  virtual void note_done(std::uint32_t stream, std::uint32_t ops) = 0;

  /// How a call went that its queue has done. Errors: unavailable past the deadline, with what was waited for; then
  /// no call works any more.
  virtual Result<void> check() = 0;
  /// Adds from when to when this rank's device brought each chunk to its destination, in the device's time: to other
  /// ranks' memories, too. Requires: the last call kept it, and went well.
  virtual void record(Recorder& recorder) const = 0;
};

}  // namespace espalier::engine
