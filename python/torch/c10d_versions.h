#pragma once

// Tested by: python/tests/torch_backend.py

// What differs between PyTorch 1.13 and 2.x for a c10d backend; no other file asks for the version.

#include <ATen/ATen.h>
#include <torch/csrc/api/include/torch/version.h>

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "python/bind/engine_api.h"

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#define ESPALIER_RECORDS_CALLS 1
#else
#define ESPALIER_RECORDS_CALLS 0
#endif

#if TORCH_VERSION_MAJOR >= 2
#define ESPALIER_SINCE_2 override
#else
#define ESPALIER_SINCE_2
#endif

namespace espalier::python {

/// What a backend derives from: from 2.0 on, a process group has a backend for each kind of device.
#if TORCH_VERSION_MAJOR >= 2
using BackendBase = c10d::Backend;
#else
using BackendBase = c10d::ProcessGroup;
#endif

/// The element types that came after 1.13.
inline std::optional<EngineElement> element_of_later_type([[maybe_unused]] at::ScalarType type) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  if (type == at::ScalarType::UInt32) return EngineElement::uint32;
  if (type == at::ScalarType::UInt64) return EngineElement::uint64;
#endif
  return std::nullopt;
}

/// Types of 8 bits, which are added as float32 and rounded once.
inline bool is_float8([[maybe_unused]] at::ScalarType type) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return c10::isFloat8Type(type);
#else
  return false;
#endif
}

inline bool is_premul_sum([[maybe_unused]] const c10d::ReduceOp& operation) {
#if TORCH_VERSION_MAJOR >= 2
  return operation.op_ == c10d::ReduceOp::PREMUL_SUM;
#else
  return false;
#endif
}

/// What a pre-multiplied sum multiplies by. Requires: it is one.
inline at::Tensor times_premul_factor(const at::Tensor& values, [[maybe_unused]] const c10d::ReduceOp& operation) {
#if TORCH_VERSION_MAJOR >= 2
  const auto* const factor = static_cast<const c10d::NCCLPreMulSumSupplement*>(operation.supplement_.get());
  if (factor != nullptr && factor->tensor_factor.defined()) {
    return values * factor->tensor_factor.to(values.device(), values.scalar_type());
  }
  if (factor != nullptr) return values * factor->double_factor;
#endif
  return values;
}

#if TORCH_VERSION_MAJOR >= 2
inline constexpr auto coalesced_all_gather = c10d::OpType::COALESCED;
inline constexpr auto coalesced_reduce_scatter = c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
#else
inline constexpr auto coalesced_all_gather = c10d::OpType::_ALLGATHER_BASE;
inline constexpr auto coalesced_reduce_scatter = c10d::OpType::_REDUCE_SCATTER_BASE;
#endif

}  // namespace espalier::python
