#pragma once

// Tested by: python/tests/torch_backend.py

#include <optional>
#include <string>
#include <vector>

#include "python/torch/c10d_versions.h"

namespace espalier::python {

/// Throws std::invalid_argument, Python's ValueError: "ProcessGroupEspalier::CALL: what".
[[noreturn]] void refuse_call(const char* call, const std::string& what);

/// Whether its bytes are its values in row-major order.
bool is_dense(const at::Tensor& tensor);
/// The tensor itself where it is so, else a copy.
at::Tensor dense(const at::Tensor& tensor);

/// Memory of a device as a row of elements. `owner`, where given, lives as long as it: what is given to streams runs
/// late.
at::Tensor row_of(void* data, std::int64_t elements, const at::TensorOptions& options, const at::Tensor& owner = {});
/// Its memory as a row of bytes. Requires: it is dense.
at::Tensor bytes_in(const at::Tensor& tensor);
/// The bytes of tensors, one tensor after the other, and back; the row of bytes is on the device of the tensors.
std::size_t bytes_of(const std::vector<at::Tensor>& tensors);
void pack(const std::vector<at::Tensor>& tensors, const at::Tensor& to);
void unpack(const at::Tensor& from, const std::vector<at::Tensor>& tensors);
/// All their elements in a row, where they lie so already; undefined where tensors are not side by side in memory.
at::Tensor side_by_side(const std::vector<at::Tensor>& tensors);

/// Throws std::invalid_argument for what is not a dense tensor with memory, and for tensors of several devices.
void check_tensors(const char* call, const std::vector<at::Tensor>& tensors);
/// Besides, that they have the first one's type and shape.
void check_alike(const char* call, const std::vector<at::Tensor>& tensors, const at::Tensor& first);

/// Numbers that the engine can combine, for a tensor that need not have such: int16 is added as int32, bool as uint8,
/// 8-bit floats as float32, complex as pairs; what is to be multiplied before, is. `write_back` puts the result where
/// it belongs.
struct Numbers {
  at::Tensor values;  ///< Contiguous; shares the tensor's memory wherever it can.
  EngineElement type = EngineElement::float32;
  EngineOperation operation = EngineOperation::sum;
  bool takes_parity = false;  ///< Exclusive or of bool is the parity of the sum.

  /// Throws std::invalid_argument where `operation` has no meaning for the tensor's type.
  static Numbers of(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation);
  /// The result, of which `values` has become the sum, in `tensor`: of its shape or of a part of it.
  void write_back(const at::Tensor& tensor) const;
};

/// The engine's type of such elements; none where it has none.
std::optional<EngineElement> element_of(at::ScalarType type);

/// Whether the operation works on bits, which the engine has no kernels for.
bool is_bitwise(const at::Tensor& tensor, const c10d::ReduceOp& operation);
/// Throws std::invalid_argument where `operation` has no meaning for the tensor's type.
void check_operation(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation);
/// All rows of a matrix combined.
at::Tensor combine_rows(const at::Tensor& rows, const c10d::ReduceOp& operation);
/// first = first OP other, of any type and operation; of AVG the sum.
void combine(at::Tensor& first, const at::Tensor& other, const c10d::ReduceOp& operation);

}  // namespace espalier::python
