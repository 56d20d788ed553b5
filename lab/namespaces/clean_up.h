#pragma once

// Tested by: tests/lab/clean_up_test.cpp

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/namespaces/job_lock.h"

namespace espalier::lab {

/// Ends what runs in the namespaces of a lab and removes them, and the lock's file at last. Processes are ended only
/// where they are proven to be in a network namespace that has the lab's name (end_processes.h); an entry that is none,
/// such as a broken link, is removed and nobody is ended for it. May be repeated after an error.
/// Errors: unavailable, naming what could not be ended or removed.
Result<void> tear_down(JobLock& lock);

/// Tears down the labs whose process and keeper are gone, and gives their prefixes. One that another process tears down
/// at the same time is left to it. Errors: those of `tear_down`, of all labs together.
Result<std::vector<std::string>> clean_leftovers();

}  // namespace espalier::lab
