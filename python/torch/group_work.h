#pragma once

// Tested by: python/tests/torch_backend.py

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "python/torch/c10d_versions.h"

namespace espalier::python {

/// What a call of the backend will have done: its tensors, and how many lists of them its future has.
struct Outputs {
  std::vector<at::Tensor> tensors;
  std::vector<std::vector<at::Tensor>> lists;  ///< Of gathering calls with several inputs; else empty.
};

/// A call of the backend that was started. Thread-safe.
class GroupWork final : public c10d::Work {
 public:
  /// `title` is for the profiler and for messages, and outlives the work. `limit`: how long `wait` waits where it is
  /// not told; zero for ever. `give_up` ends the call when that time is over.
  GroupWork(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs, Outputs outputs,
            std::chrono::milliseconds limit, std::function<void(const std::string&)> give_up);

  /// The profiler's range of the call begins on the calling thread, as long as it has not; `run` does so.
  void begin_range();
  /// Runs what the call does, on the calling thread, and says how it ended; exceptions are kept for who waits.
  void run(const std::function<void()>& call);
  void succeed();
  void fail(std::exception_ptr why);
  /// Of a receive from any rank. Call it before `succeed`.
  void set_source(int rank) { source_ = rank; }

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override;
  int sourceRank() const override { return source_; }
  void abort() override;

 private:
  const char* title_;
  Outputs outputs_;
  std::chrono::milliseconds limit_;
  std::function<void(const std::string&)> give_up_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::function<void()> begin_range_;  ///< Null where no profiler is at work, or it has begun.
  int source_ = -1;
};

}  // namespace espalier::python
