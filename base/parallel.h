#pragma once

// Tested by: tests/unit/base/parallel_test.cpp

#include <cstddef>
#include <functional>

namespace espalier {

/// How many threads this process may keep busy: its processors, 1 at least.
unsigned usable_threads();

/// Calls work(0), work(1), ..., work(count - 1), each once and begun in this order, on up to so many threads, of which
/// the caller's is one; returns when all are done. The others take no signals. An exception ends the process' use of
/// the rest: those not begun are left out, and it reaches the caller.
void run_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace espalier
