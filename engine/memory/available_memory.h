#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace espalier::engine {

/// Whether the machine and this control group have so much memory to give. No limit stops a process that reserves more:
/// the kernel would kill processes to find it. Errors: unavailable, "cannot get BYTES bytes of WHAT: ...".
Result<void> check_available(std::int64_t bytes, std::string_view what);

}  // namespace espalier::engine
