#pragma once

// Tested by: tests/unit/scenario/workload/kineto/cpu_stretches_test.cpp

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace espalier::scenario {

/// When a kernel of a recorded run ran. Times are in microseconds, as the trace counts.
struct KernelRun {
  double begin = 0;
  double end = 0;
  std::int64_t stream = 0;
  std::int64_t correlation = -1;  ///< Of the call that launched it: calls of a process count up. -1: not known.
  bool communicates = false;
};

/// A call of the host to the driver.
struct HostCall {
  double begin = 0;
  double end = 0;
  std::int64_t correlation = -1;
  std::string name;  ///< "cudaLaunchKernel", ...
};

/// An entry that the driver's own record of synchronisation has.
struct RecordedWait {
  enum class Kind : std::uint8_t {
    stream_waits_for_event,
    host_waits_for_event,
    host_waits_for_stream,
    host_waits_for_all
  };
  Kind kind = Kind::stream_waits_for_event;
  std::int64_t correlation = -1;  ///< Of the call that waits.
  std::int64_t stream = -1;       ///< That waits, or that the host waits for.
  std::int64_t on_stream = -1;    ///< Where the event was recorded, and by which call.
  std::int64_t recorded = -1;
};

/// How to read what a trace does not say: what kernels waited for on other streams.
enum class WaitReading : std::uint8_t {
  /// A kernel waits for what it was seen to wait for: what ended on another stream while its own was idle and it was
  /// launched, or while the host stood in a synchronisation before the launch. A collective also waits for all kernels
  /// that compute and had ended: its data come from there (PyTorch lets each wait for the current stream).
  least,
  /// A kernel waits for all that had ended when it began.
  most,
};

/// What each kernel of a rank waited for: the one before it on its stream; where the trace records waits of streams,
/// these and the host's; else by the reading. Kernels of a stream follow each other in the order of their begins.
class KernelWaits {
 public:
  /// Requires: kernels in the order of their begins.
  KernelWaits(std::vector<KernelRun> kernels, const std::vector<HostCall>& calls, std::vector<RecordedWait> recorded,
              WaitReading reading);

  /// The kernels before it, ascending by stream, that it waits for.
  [[nodiscard]] std::vector<std::size_t> of(std::size_t kernel);

  /// How many pairs of a kernel and a stream, of those asked for so far, the two readings disagree on.
  [[nodiscard]] std::uint64_t guessed() const { return guessed_; }

 private:
  struct Stream {
    std::vector<std::size_t> kernels;  ///< In their order.
    std::map<std::int64_t, std::size_t>
        last_considered;  ///< By another stream: the latest of it that one of these may wait for.
  };
  struct HostWait {
    double begin = 0;
    double end = 0;
    bool is_for_all = false;
  };

  [[nodiscard]] bool is_recorded() const { return !recorded_.empty(); }
  void add_recorded(std::size_t kernel, std::vector<std::size_t>& waits) const;
  void add_read(std::size_t kernel, std::vector<std::size_t>& waits);
  /// Of a stream's kernels the last one that had ended by a time and that was launched before a kernel, or none.
  [[nodiscard]] std::size_t last_ended(const Stream& stream, double time, std::size_t before) const;
  /// Of a stream's kernels the last one before `before` that a call before this one launched, or none.
  [[nodiscard]] std::size_t last_launched(std::int64_t stream, std::int64_t correlation, std::size_t before) const;
  [[nodiscard]] const HostWait* host_wait_before(double launch) const;

  std::vector<KernelRun> kernels_;
  std::vector<double> launches_;       ///< By kernel: when the host called for it; before all time where not known.
  std::vector<std::size_t> previous_;  ///< By kernel: the one before it on its stream, or none.
  std::map<std::int64_t, Stream> streams_;
  std::vector<HostWait> host_waits_;    ///< By end.
  std::vector<RecordedWait> recorded_;  ///< By correlation.
  WaitReading reading_;
  std::uint64_t guessed_ = 0;
};

}  // namespace espalier::scenario
