#pragma once

// Tested by: tests/lab/network_test.cpp

#include <string>
#include <vector>

#include "base/result.h"

namespace espalier::lab {

/// What a lab needs of this machine.
struct Support {
  std::vector<std::string> missing;  ///< What is not there, each with how to get it; empty: a lab can be built.
  bool delays_packets = false;       ///< The kernel has netem, so links can have latencies.

  [[nodiscard]] bool is_enough() const { return missing.empty(); }
};

/// Tries what a lab does (a namespace, a pair of devices, a tbf, a netem) in a namespace of its own, and removes it.
Support probe_support();

/// `probe_support` as an error: unavailable, with everything that is missing.
Result<Support> require_support();

/// For a user without rights: moves this process into a user namespace in which it may build networks, with mounts of
/// its own. Requires: a process of one thread, at its start. Does nothing for a process that has the rights.
/// Errors: unavailable when the kernel does not let this user have namespaces.
Result<void> gain_rights();

}  // namespace espalier::lab
