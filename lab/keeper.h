#pragma once

#include <optional>

#include "base/result.h"
#include "lab/job_name.h"
#include "lab/process.h"

namespace espalier::lab {

/// Sees to it that a lab's namespaces go away. A small process in a session of its own waits for the end of a pipe that
/// only this object writes to; the kernel closes the pipe when this process ends, however that happens, and then the
/// keeper tears the lab down. Ordinary ends take the same way.
class Keeper {
 public:
  [[nodiscard]] static Result<Keeper> start(const JobName& job);

  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&& other) noexcept;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  /// As `finish`; errors are lost.
  ~Keeper();

  /// Has the lab torn down now, and waits until that is done.
  /// Errors: unavailable, with the tools' own words.
  Result<void> finish();
  /// Ends the keeper without tearing anything down: the namespaces stay until `clean_leftovers`.
  void let_go();

 private:
  Keeper() = default;
  int pipe_fd_ = -1;
  std::optional<Process> process_;
};

}  // namespace espalier::lab
