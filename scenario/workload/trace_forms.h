#pragma once

// Tested by: tests/unit/scenario/workload/trace_forms_test.cpp

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scenario/workload/chakra.h"
#include "scenario/workload/kineto/kernel_waits.h"
#include "scenario/workload/kineto/recorded_time.h"

namespace espalier::scenario {

/// Reads a GOAL file, the schedules of all ranks: nodes by rank. `requires` waits for an operation's end. An operation
/// that `irequires` another begins once that one may begin. Operations of a cpu follow each other; `nic` is not looked
/// at. `name` stands for the file. Errors: invalid_input with file and line; too_large past `max_ranks` or 2^26
/// operations.
/// Source: T. Hoefler, C. Siebert, A. Lumsdaine, "Group Operation Assembly Language", ICPP 2009; the text form that
/// LogGOPSim's schedgen writes.
Result<std::vector<std::vector<ChakraNode>>> read_goal(std::string_view text, const std::string& name,
                                                       std::size_t max_ranks);

/// Whether bytes begin as a compiled GOAL file does.
bool is_goal_binary(std::string_view bytes);

/// Reads a compiled GOAL file (.bin): what its text says, node by node. Errors: invalid_input where it is broken or of
/// another version, such as LogGOPSim2's; unsupported for receives from any rank or of any tag; too_large as read_goal.
/// Source: LogGOPSim, src/LogGOPSim/Parser.hpp, which writes and reads the form.
Result<std::vector<std::vector<ChakraNode>>> read_goal_binary(std::string_view bytes, const std::string& name,
                                                              std::size_t max_ranks);

/// What a PyTorch profiler wrote about one rank.
struct KinetoTrace {
  std::vector<ChakraNode> nodes;
  std::map<std::string, std::vector<std::size_t>> groups;  ///< Ranks of the traces, by the name that nodes give.
  std::uint64_t guessed = 0;                               ///< KernelWaits::guessed, CpuStretches::guessed.
  RecordedTime recorded;
};

/// Reads the GPU kernels of a PyTorch profiler's trace (Kineto, JSON). Kernels of NCCL become collectives and messages
/// of their process group; all others compute for as long as they took. What a kernel waits for is KernelWaits'; what
/// then passed until it began, it pauses. Where no kernel ran, reads what the processor's threads did and the calls of
/// a backend such as gloo (read_cpu_stretches). `ranks`: how many traces there are. `is_spmd`: all ranks do the same
/// and are one group, of as many ranks as the trace's head says; nodes name no group then. Errors: invalid_input where
/// the file is no such trace; unsupported for collectives and groups that it does not say enough of, naming the kernel.
Result<KinetoTrace> read_kineto(std::string_view text, const std::string& name, std::size_t ranks,
                                WaitReading reading = WaitReading::least, bool is_spmd = false);

}  // namespace espalier::scenario
