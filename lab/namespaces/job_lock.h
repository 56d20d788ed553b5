#pragma once

// Tested by: tests/lab/clean_up_test.cpp

#include <optional>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "lab/namespaces/job_name.h"

namespace espalier::lab {

/// The exclusive right to a lab's namespaces, to make them and to tear them down: an flock(2) on the file
/// /run/espalier/PREFIX.lock, which the kernel releases when the last process that inherited it ends, however that
/// happens. The lab's process and its keeper share one; whoever takes it knows that both are gone.
class JobLock {
 public:
  /// Nothing when another holds it. Errors: unavailable when the lock's file cannot be had.
  [[nodiscard]] static Result<std::optional<JobLock>> try_take(const JobName& job);

  [[nodiscard]] const JobName& job() const { return job_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Removes the lock's file, for a lab of which nothing is left.
  void remove();
  /// Holds it until this process ends.
  void hold_for_ever() { static_cast<void>(fd_.release()); }

 private:
  JobLock(const JobName& job, FileDescriptor fd) : job_(job), fd_(std::move(fd)) {}

  JobName job_;
  FileDescriptor fd_;
};

/// The lock of a name that no lab has, of this process or another.
/// Errors: those of JobLock::try_take.
Result<JobLock> lock_new_job();

/// All jobs that have a lock's file, whether somebody holds it or not.
std::vector<JobName> list_locked_jobs();

}  // namespace espalier::lab
