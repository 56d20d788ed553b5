#pragma once

// Tested by: tests/lab/clean_up_test.cpp

#include <optional>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "lab/namespaces/job_lock.h"

namespace espalier::lab {

/// Sees to it that a lab's namespaces go away. A small process in a session of its own waits for the end of a channel
/// whose other end only this object holds; the kernel closes it when this process ends, however that happens, and then
/// the keeper tears the lab down. Ordinary ends take the same path. The keeper is a fork of this process that executes
/// no other program: it needs no tools, and works where the program's file is gone.
class Keeper {
 public:
  /// Requires: no thread of this process holds a lock that `fork` does not care for (glibc cares for malloc's and
  /// stdio's). Errors: unavailable when there is no descriptor or process for it.
  [[nodiscard]] static Result<Keeper> start(JobLock lock);

  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&& other) noexcept;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  /// As `finish`; errors are lost.
  ~Keeper();

  [[nodiscard]] const JobName& job() const { return lock_->job(); }
  /// Has the lab torn down now, and waits until that is done; does it itself when somebody killed the keeper.
  /// Errors: those of `tear_down`.
  Result<void> finish();
  /// Ends the keeper without tearing anything down: the namespaces stay until this process has ended and somebody calls
  /// `clean_leftovers`.
  void let_go();

 private:
  Keeper(JobLock lock, FileDescriptor channel, int process)
      : lock_(std::move(lock)), channel_(std::move(channel)), process_(process) {}

  std::optional<JobLock> lock_;
  FileDescriptor channel_;
  int process_ = -1;  ///< -1: has been waited for.
};

}  // namespace espalier::lab
