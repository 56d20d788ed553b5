#pragma once

// Tested by: tests/unit/engine/measure/known_buffers_test.cpp

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "engine/check/data_case.h"
#include "engine/device/device_queue.h"

namespace espalier::engine {

/// Writes what a rank sends to memory of the queue's device: by the device where it has code for that, else by the host
/// and a copy. Waits for it. Errors: those of the device; unavailable past so long.
Result<void> fill_on_device(DeviceQueue& queue, const DataCase& data, std::uint32_t rank, void* send,
                            std::chrono::milliseconds longest);

/// As check_receive_buffer, of memory of the queue's device. Where the device compares, the host looks only at what
/// differs in a bit: what is wrong, and averages that are rounded otherwise.
Result<CheckResult> check_on_device(DeviceQueue& queue, const DataCase& data, std::uint32_t rank, const void* receive,
                                    std::chrono::milliseconds longest);

}  // namespace espalier::engine
