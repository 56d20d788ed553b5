#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace espalier {

/// Starts a thread that takes no signals: handlers keep running in the program's own threads.
/// Errors: unavailable when the system has no thread to give.
Result<std::thread> start_background_thread(std::function<void()> body);

}  // namespace espalier
