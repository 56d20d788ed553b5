#pragma once

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

#include "base/element.h"

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

namespace espalier::python {

/// What a backend derives from: from 2.0 on, a process group has a backend for each kind of device.
#if TORCH_VERSION_MAJOR >= 2
using BackendBase = c10d::Backend;
using MaybeTensors = std::optional<std::vector<at::Tensor>>;
#else
using BackendBase = c10d::ProcessGroup;
using MaybeTensors = c10::optional<std::vector<at::Tensor>>;
#endif

/// The element types that came after 1.13.
inline std::optional<ElementType> element_of_later_type([[maybe_unused]] at::ScalarType type) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  if (type == at::ScalarType::UInt32) return ElementType::uint32;
  if (type == at::ScalarType::UInt64) return ElementType::uint64;
#endif
  return std::nullopt;
}

}  // namespace espalier::python
