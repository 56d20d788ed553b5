#pragma once

// Tested by: python/tests/torch_backend.py

#include <cstdint>
#include <vector>

#include "python/torch/c10d_versions.h"

namespace espalier::python {

/// A call as the profiler writes it down, in the words that PyTorch's own backends have.
struct CallRecord {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const std::vector<at::Tensor>& inputs;
  const std::vector<at::Tensor>& outputs;
  std::int64_t number = 0;  ///< Among the group's calls, or among its messages.
  bool is_message = false;
  int rank = 0;
  int members = 1;
  bool is_of_all_ranks = false;  ///< Else the trace does not say of which.
};

/// An event `record_param_comms` on the calling thread where a profiler is at work: the collective's name, elements,
/// type and group. Does nothing before PyTorch 2.5.
void record_call(const BackendBase& group, const CallRecord& call);

}  // namespace espalier::python
