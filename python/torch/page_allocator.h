#pragma once

// Tested by: python/tests/torch_backend.py

#include <ATen/ATen.h>

#include <cstddef>
#include <map>
#include <optional>

#include "python/torch/engine_job.h"

namespace espalier::python {

/// From now on PyTorch takes memory of 64 KiB and more for CPU tensors in whole pages, which ranks can share where they
/// lie. Whoever has set an allocator of higher priority keeps it.
void allocate_tensors_in_pages();

/// The memories of a group's tensors that it shares with the ranks of its machine: those that were worked on before, as
/// the buckets of DistributedDataParallel are. Then the others read and write them where they lie, and nothing is
/// copied in between. A memory is shared by one group at most. Of one thread, but tensors may be freed on any.
///
/// Invariant: what is shared is freed only after it was taken back, by `release_freed` or `release_all`.
class SharedTensors {
 public:
  explicit SharedTensors(EngineJob& ranks) : ranks_(ranks) {}
  ~SharedTensors() { release_all(); }
  SharedTensors(const SharedTensors&) = delete;
  SharedTensors& operator=(const SharedTensors&) = delete;

  /// Before a call in place on a tensor that nobody else writes: shares its memory, if it consists of whole pages that
  /// belong to the tensor alone, and a call has worked on it before. Requires: no call under way.
  void note(const at::Tensor& tensor);
  void release_all();

 private:
  void release_freed();

  EngineJob& ranks_;
};

}  // namespace espalier::python
