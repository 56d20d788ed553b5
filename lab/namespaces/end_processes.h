#pragma once

// Tested by: tests/lab/clean_up_test.cpp

#include <span>

#include "base/result.h"
#include "lab/namespaces/held_name_space.h"

namespace espalier::lab {

/// Kills every process that is in one of these namespaces, and waits for their ends. A process is killed only through a
/// descriptor of it, and only after it was found in a namespace with that descriptor open: a process id that is used
/// again in between hits nobody.
/// Errors, before anything is killed: unavailable when this process or process 1 is in one of the namespaces.
/// Afterwards: unavailable when a process could not be killed or does not end.
Result<void> end_processes_in(std::span<const HeldNameSpace> spaces);

/// Whether this kernel can do so: /proc shows processes, and they have descriptors.
Result<void> probe_process_descriptors();

}  // namespace espalier::lab
