#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/element.h"

namespace espalier::engine::cuda {

enum class KernelKind { run, reduce, divide, pattern };

/// What a kernel is called in the compiled kernels: "espalier_run_float32_sum", "espalier_divide_int8". `avg` adds.
/// One kernel has the known data of all types.
inline std::string kernel_name(KernelKind kind, ElementType type, ReduceOperation operation) {
  static constexpr std::array<std::string_view, 10> types = {"int8",   "uint8",   "int32",    "uint32",  "int64",
                                                             "uint64", "float16", "bfloat16", "float32", "float64"};
  if (kind == KernelKind::pattern) return "espalier_pattern";
  const std::string element(types[static_cast<std::size_t>(type)]);
  if (kind == KernelKind::divide) return "espalier_divide_" + element;
  if (operation == ReduceOperation::avg) operation = ReduceOperation::sum;
  return (kind == KernelKind::run ? "espalier_run_" : "espalier_reduce_") + element + "_" +
         std::string(to_string(operation));
}

}  // namespace espalier::engine::cuda
