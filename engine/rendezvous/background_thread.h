#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <functional>
#include <new>
#include <thread>

#include "base/result.h"

namespace espalier::engine::rendezvous {

/// Starts a thread that takes no signals: handlers keep running in the program's own threads.
/// Errors: unavailable when the system has no thread to give.
Result<std::thread> start_background_thread(std::function<void()> body);

/// Runs a step of a background thread; false when memory ran out in it. What the step was about is then in an unknown
/// state and is to be given up: an exception that left the thread would end the whole process.
template <class Step>
[[nodiscard]] bool has_memory_for(const Step& step) {
  try {
    step();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace espalier::engine::rendezvous
