#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/executor/execution.h"
#include "engine/executor/waiting.h"
#include "engine/rendezvous/control_plane.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// A call under way with what an error has to name.
struct RunningCall {
  Execution* execution = nullptr;
  std::string_view group;                                       ///< The communicator's name.
  std::span<const std::uint32_t> members;                       ///< The job's rank of each member.
  std::span<const std::unique_ptr<GroupTransport>> transports;  ///< Of the group.
};

/// What calls run in.
struct RunContext {
  rendezvous::ControlPlane* control = nullptr;
  std::span<const std::unique_ptr<Transport>> transports;  ///< Of the job.
  std::span<Transport* const> progressing;                 ///< Those of them that need `progress`.
  Waiting* waiting = nullptr;
  const std::atomic<bool>* is_aborted = nullptr;
  std::chrono::milliseconds timeout{30000};
};

/// Carries calls out side by side until all are done. What ends one of them fails the job on all ranks.
/// Errors: unavailable when a rank failed, the caller aborted, or nothing moved for the timeout; whatever the streams
/// find wrong. Each names the operation, the call's number, the group, the peer and what was expected of it.
Result<void> run_calls(std::span<const RunningCall> calls, const RunContext& context);

}  // namespace espalier::engine
