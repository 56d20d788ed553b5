#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <memory>

#include "engine/communicator/job.h"
#include "engine/transport/whole_call.h"

namespace espalier::engine {

/// A call that a stream captured: what its graph uses whenever it is launched, for as long as the group lives.
struct CapturedCall {
  explicit CapturedCall(Job& of) : job(of) {}
  ~CapturedCall() {
    whole.reset();
    if (scratch != nullptr) job.memory().release(scratch);
    if (input != nullptr) job.memory().release(input);
  }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  Job& job;
  std::unique_ptr<WholeCall> whole;
  std::byte* scratch = nullptr;  ///< Of this call alone: that of others moves when a larger one comes.
  std::byte* input = nullptr;    ///< A copy that each launch makes (RankProgram::keeps_input).
};

}  // namespace espalier::engine
