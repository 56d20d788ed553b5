#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_measure_test.cpp

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/gpu_path.h"
#include "engine/measure/measure.h"
#include "schedule/schedule.h"

namespace espalier::engine::cuda {

/// What is run on GPUs: a schedule for one size. Requires: a schedule that verifies, of the data's collective.
struct GpuCase {
  const Schedule& schedule;
  DataCase data;
  Pacing pacing;
  std::chrono::milliseconds deadline{30'000};  ///< For each call.
  GpuPath path = GpuPath::kernels;
};

/// On which GPU each rank is: neighbours together, as evenly as it goes.
std::vector<std::size_t> place_ranks(std::size_t ranks, std::size_t gpus);

/// The most blocks that each rank may have, as all ranks of a GPU run at a time. Errors: those of
/// CudaDevice::residency.
Result<std::uint32_t> max_blocks_on(const std::vector<std::unique_ptr<CudaDevice>>& gpus, std::uint32_t ranks,
                                    ElementType type, ReduceOperation operation);

/// Runs all ranks of a schedule on GPUs of this process: warm-ups, then iterations one after the other, out of place
/// and in place. Times are the host's, from launch to end. Errors: those of compile_for_device, verify and GpuRanks.
Result<RunMeasurement> measure_on_gpus(const std::vector<std::unique_ptr<CudaDevice>>& gpus, const GpuCase& gpu_case,
                                       const MeasureOptions& options);

/// About how many seconds a call takes where kernels carry it out (GpuCosts). What GPUs move between each other is not
/// in it. Errors: those of compile_for_device.
Result<double> predict_on_gpus(const std::vector<std::unique_ptr<CudaDevice>>& gpus, const GpuCase& gpu_case);

/// Seconds of a copy of so many bytes within a GPU: the median of some. Errors: those of the driver.
Result<double> measure_copy(CudaDevice& gpu, std::int64_t bytes);

/// Runs a schedule out of place with and without recording; the timeline is that of the last iteration. A span is a
/// chunk at its destination, from when it may begin until it lies there.
Result<RecordedRun> record_on_gpus(const std::vector<std::unique_ptr<CudaDevice>>& gpus, const GpuCase& gpu_case,
                                   const MeasureOptions& options, std::string title,
                                   std::vector<std::string> rank_names);

}  // namespace espalier::engine::cuda
