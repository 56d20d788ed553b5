#pragma once

// Tested by: tests/unit/planners/nccl/search/nccl_search_test.cpp

#include <string_view>

#include "planners/nccl/search/nccl_box.h"

namespace espalier::planners {

/// What NCCL counts of a processor.
struct Processor {
  ProcessorMaker maker = ProcessorMaker::intel;
  float between = 10;  ///< GB/s from one socket to another.
  bool is_known = false;
};

/// "intel-6-143", "amd-25-17": maker, and family and model as CPUID numbers them, which may be left out.
Processor parse_processor(std::string_view model);

/// Of the machines that vendors sell with GPUs of this compute capability: AMD's for A100, Intel's for the others.
Processor usual_processor(int capability);

}  // namespace espalier::planners
