#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_program_test.cpp

#include <memory>
#include <vector>

#include "engine/cuda/device/gpu_program.h"

namespace espalier::engine::cuda {

/// A call of a program as a CUDA graph: launched again and again without giving its parts anew.
class GpuGraph {
 public:
  /// Captures one call; it does not run. Requires: the program outlives the graph. Errors: those of the driver.
  static Result<std::unique_ptr<GpuGraph>> capture(GpuProgram& program);
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// A call, behind what was given to the stream, of the program's first GPU; does not wait. Errors: those of the
  /// driver.
  Result<void> launch(DriverHandle stream);

 private:
  explicit GpuGraph(GpuProgram& program) : program_(program), gpus_(program.gpus()) {}
  Result<void> set_up();
  Result<void> record();
  const Driver& use(std::size_t gpu) const;  ///< Makes it the current one.

  GpuProgram& program_;
  std::vector<CudaDevice*> gpus_;
  std::vector<DriverHandle> streams_;  ///< By GPU: what is captured was given to these.
  std::vector<DriverHandle> events_;   ///< Of the first GPU its begin, of others their end.
  DriverHandle graph_ = nullptr;
  DriverHandle executable_ = nullptr;
};

}  // namespace espalier::engine::cuda
