#pragma once

// Tested by: tests/unit/scenario/workload/kineto/cpu_stretches_test.cpp

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/workload/kineto/kernel_waits.h"

namespace espalier::scenario {

/// A stretch of time in which a thread of a rank computed, or in which a call of torch.distributed was carried out.
/// Times are in microseconds, as the trace counts.
struct CpuStretch {
  double begin = 0;
  double end = 0;
  std::string name;
  nlohmann::json call;  ///< A call's arguments in the words that kernels of NCCL have; null where it computes.
  std::vector<std::size_t> after;  ///< The earlier stretches that it waited for.
};

struct CpuStretches {
  std::vector<CpuStretch> stretches;  ///< In the order of their begins.
  std::uint64_t guessed = 0;          ///< Stretches that compute of which the two readings say different things.
};

/// Reads a trace of training on processors: the operators of each thread, and the ranges that a backend such as gloo,
/// MPI or espalier records for each call ("gloo:all_reduce"). A thread computes from one operator to the next, since
/// it is the host, too; it is cut where it issues a call and where it waited for one. A call waits for what its thread
/// had done when it issued it, and for the calls before it on the backend's thread. A stretch waits for the one before
/// it on its thread and, by `least`, for calls that ended after its thread had done nothing for 50 us; by `most`, for
/// all that had ended. `ranks`: the size of the one group that there is. Errors: unsupported for a call that does not
/// say what it carries.
Result<CpuStretches> read_cpu_stretches(const nlohmann::json& events, const std::string& name, std::size_t ranks,
                                        WaitReading reading);

}  // namespace espalier::scenario
