#pragma once

// Tested by: tests/unit/nccl_plugins/profiler/profiler_test.cpp

#include <string>

#include "nccl_plugins/profiler/recorder.h"

namespace espalier::nccl_plugins::profiler {

/// Writes what a recorder holds as a Chrome trace in Espalier's form (docs/timeline.md), whole or not at all: sends and
/// receives of proxy steps, with the waiting before a send and after the arrival left out, and the kernel of each
/// channel as `reduce`; calls without any of these as `reduce`. One transfer is what one rank sends another on one
/// channel in one call, a chunk a step. Returns what went wrong, or nothing.
std::string write_timeline(const EventRecorder& recorder, const std::string& path);

/// "128 MiB": the largest power of 1,024 that divides it.
std::string whole_size(std::int64_t bytes);

}  // namespace espalier::nccl_plugins::profiler
