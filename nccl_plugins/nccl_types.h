#pragma once

// Tested by: tests/unit/nccl_plugins/profiler/profiler_test.cpp

namespace espalier::nccl_plugins {

/// ncclResult_t, as far as a plug-in returns it.
enum class NcclResult : int { success = 0, system_error = 2, internal_error = 3 };

/// ncclDebugLogLevel.
enum class LogLevel : int { warn = 2, info = 3 };

/// What log lines are about: NCCL_TUNING and NCCL_PROFILE of its subsystems.
constexpr unsigned long tuning_subsystem = 1UL << 6U;

/// ncclDebugLogger_t: NCCL's own log, by NCCL_DEBUG and NCCL_DEBUG_SUBSYS.
using Logger = void (*)(LogLevel level, unsigned long subsystem, const char* file, int line, const char* format, ...);

/// What a plug-in exports to NCCL; everything else in it stays hidden.
#define ESPALIER_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

}  // namespace espalier::nccl_plugins
