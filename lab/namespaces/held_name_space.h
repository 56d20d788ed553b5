#pragma once

// Tested by: tests/lab/clean_up_test.cpp

#include <sys/types.h>

#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace espalier::lab {

/// A network namespace that is held open, so that its inode number is no other's.
struct HeldNameSpace {
  std::string name;
  FileDescriptor fd;
  dev_t device = 0;
  ino_t inode = 0;

  /// Whether a process is in it, which /proc/PID/ns/net tells; false also where that cannot be read.
  [[nodiscard]] bool holds(int process) const;
};

/// Opens an entry of /run/netns; a symbolic link is not followed.
/// Errors: invalid_input when it is no network namespace; unavailable when it cannot be opened.
Result<HeldNameSpace> hold_name_space(const std::string& name);

}  // namespace espalier::lab
