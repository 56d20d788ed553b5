#include "python/torch/tensor_elements.h"

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace espalier::python {
namespace {

using RedOp = c10d::ReduceOp::RedOpType;

const char* name_of(RedOp operation) {
  switch (operation) {
    case RedOp::SUM: return "SUM";
    case RedOp::AVG: return "AVG";
    case RedOp::PRODUCT: return "PRODUCT";
    case RedOp::MIN: return "MIN";
    case RedOp::MAX: return "MAX";
    case RedOp::BAND: return "BAND";
    case RedOp::BOR: return "BOR";
    case RedOp::BXOR: return "BXOR";
    case RedOp::PREMUL_SUM: return "PREMUL_SUM";
    default: return "this operation";
  }
}

std::optional<EngineOperation> operation_of(RedOp operation) {
  switch (operation) {
    case RedOp::SUM:
    case RedOp::PREMUL_SUM: return EngineOperation::sum;  // Of values that are multiplied before.
    case RedOp::AVG: return EngineOperation::avg;
    case RedOp::PRODUCT: return EngineOperation::prod;
    case RedOp::MIN: return EngineOperation::min;
    case RedOp::MAX: return EngineOperation::max;
    default: return std::nullopt;
  }
}

/// Of truth values: a sum is true where one of them is.
std::optional<EngineOperation> bool_operation_of(RedOp operation) {
  switch (operation) {
    case RedOp::SUM:
    case RedOp::MAX:
    case RedOp::BOR: return EngineOperation::max;
    case RedOp::PRODUCT:
    case RedOp::MIN:
    case RedOp::BAND: return EngineOperation::min;
    case RedOp::BXOR: return EngineOperation::sum;
    default: return std::nullopt;
  }
}

[[noreturn]] void refuse_operation(const char* call, const at::Tensor& tensor, RedOp operation) {
  refuse_call(call, std::string(name_of(operation)) + " of " + c10::toString(tensor.scalar_type()) +
                        " tensors is not supported");
}

void copy_bytes(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_cpu()) {  // Less than copy_ costs for few bytes.
    std::memcpy(to.data_ptr(), from.data_ptr(), from.nbytes());
  } else {
    to.copy_(from, true);
  }
}

}  // namespace

std::optional<EngineElement> element_of(at::ScalarType type) {
  switch (type) {
    case at::kByte: return EngineElement::uint8;
    case at::kChar: return EngineElement::int8;
    case at::kInt: return EngineElement::int32;
    case at::kLong: return EngineElement::int64;
    case at::kHalf: return EngineElement::float16;
    case at::kBFloat16: return EngineElement::bfloat16;
    case at::kFloat: return EngineElement::float32;
    case at::kDouble: return EngineElement::float64;
    default: return element_of_later_type(type);
  }
}

void refuse_call(const char* call, const std::string& what) {
  throw std::invalid_argument(std::string("ProcessGroupEspalier::") + call + ": " + what);
}

bool is_dense(const at::Tensor& tensor) {
  // Conjugated and negated views show other values than their memory holds.
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor dense(const at::Tensor& tensor) {
  return is_dense(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous();
}

at::Tensor row_of(void* data, std::int64_t elements, const at::TensorOptions& options, const at::Tensor& owner) {
  const std::array<std::int64_t, 1> sizes = {elements};
  return at::for_blob(data, sizes)
      .deleter([owner](void*) {})
      .options(options)
      .target_device(options.device())
      .make_tensor();
}

at::Tensor bytes_in(const at::Tensor& tensor) {
  return row_of(tensor.data_ptr(), static_cast<std::int64_t>(tensor.nbytes()), tensor.options().dtype(at::kByte),
                tensor);
}

std::size_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

void pack(const std::vector<at::Tensor>& tensors, const at::Tensor& to) {
  std::int64_t place = 0;
  for (const at::Tensor& tensor : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    if (bytes > 0) copy_bytes(bytes_in(dense(tensor)), to.narrow(0, place, bytes));
    place += bytes;
  }
}

void unpack(const at::Tensor& from, const std::vector<at::Tensor>& tensors) {
  std::int64_t place = 0;
  for (const at::Tensor& tensor : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    if (bytes > 0) {
      const at::Tensor values = is_dense(tensor) ? tensor : at::empty(tensor.sizes(), tensor.options());
      copy_bytes(from.narrow(0, place, bytes), bytes_in(values));
      if (!values.is_same(tensor)) tensor.copy_(values);
    }
    place += bytes;
  }
}

at::Tensor side_by_side(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return {};
  auto* place = static_cast<std::byte*>(tensors.front().data_ptr());
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!is_dense(tensor) || tensor.data_ptr() != place || tensor.dtype() != tensors.front().dtype()) return {};
    place += tensor.nbytes();
    elements += tensor.numel();
  }
  return row_of(tensors.front().data_ptr(), elements, tensors.front().options(), tensors.front());
}

void check_tensors(const char* call, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    const c10::Device device = tensor.device();
    if (!device.is_cpu() && (device.is_meta() || !c10::impl::hasDeviceGuardImpl(device.type()))) {
      refuse_call(call, "tensors of " + device.str() + " have no memory that it could copy");
    }
    if (device != tensors.front().device()) {
      refuse_call(call, "requires tensors of one device; there are some on " + tensors.front().device().str() +
                            " and some on " + device.str());
    }
    if (tensor.layout() != at::kStrided) refuse_call(call, "requires dense tensors");
  }
}

void check_alike(const char* call, const std::vector<at::Tensor>& tensors, const at::Tensor& first) {
  check_tensors(call, tensors);
  if (!tensors.empty()) check_tensors(call, {first, tensors.front()});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].scalar_type() != first.scalar_type()) {
      refuse_call(call, std::string("invalid tensor type at index ") + std::to_string(i) + " (expected " +
                            c10::toString(first.scalar_type()) + ", got " + c10::toString(tensors[i].scalar_type()) +
                            ")");
    }
    if (tensors[i].sizes() != first.sizes()) {
      refuse_call(call, "invalid tensor size at index " + std::to_string(i) + " (expected " + c10::str(first.sizes()) +
                            ", got " + c10::str(tensors[i].sizes()) + ")");
    }
  }
}

Numbers Numbers::of(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  const RedOp op = operation;
  at::Tensor values = dense(tensor);
  if (values.scalar_type() == at::kBool) {
    const auto found = bool_operation_of(op);
    if (!found) refuse_operation(call, tensor, op);
    return {values.view(at::kByte), EngineElement::uint8, *found, op == RedOp::BXOR};
  }
  const auto found = operation_of(op);
  if (values.is_complex() && (op == RedOp::SUM || op == RedOp::AVG)) {
    values = at::view_as_real(values);
  } else if (values.scalar_type() == at::kShort) {
    values = values.to(at::kInt);
  } else if (is_float8(values.scalar_type())) {
    values = values.to(at::kFloat);
  }
  if (is_premul_sum(operation)) {
    if (!values.is_floating_point()) refuse_operation(call, tensor, op);
    values = times_premul_factor(values, operation);
  }
  const auto type = element_of(values.scalar_type());
  if (!type || !found) refuse_operation(call, tensor, op);
  return {values, *type, *found, false};
}

void Numbers::write_back(const at::Tensor& tensor) const {
  at::Tensor result = values;
  if (tensor.scalar_type() == at::kBool) {
    if (takes_parity) result.bitwise_and_(1);
    result = result.view(at::kBool);
  } else if (tensor.is_complex()) {
    result = at::view_as_complex(result);
  }
  if (result.data_ptr() == tensor.data_ptr()) return;
  tensor.copy_(result.view(tensor.sizes()));
}

bool is_bitwise(const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  const RedOp op = operation;
  const bool is_of_bits = op == RedOp::BAND || op == RedOp::BOR || op == RedOp::BXOR;
  return is_of_bits && at::isIntegralType(tensor.scalar_type(), false);
}

void check_operation(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  if (is_bitwise(tensor, operation)) return;
  Numbers::of(call, at::empty({0}, at::device(at::kCPU).dtype(tensor.dtype())), operation);
}

at::Tensor combine_rows(const at::Tensor& rows, const c10d::ReduceOp& operation) {
  at::Tensor first = rows[0];
  for (std::int64_t row = 1; row < rows.size(0); ++row) combine(first, rows[row], operation);
  return first;
}

void combine(at::Tensor& first, const at::Tensor& other, const c10d::ReduceOp& operation) {
  switch (const RedOp op = operation; op) {
    case RedOp::SUM:
    case RedOp::AVG: first.add_(other); return;
    case RedOp::PRODUCT: first.mul_(other); return;
    case RedOp::MIN: at::minimum_out(first, first, other); return;
    case RedOp::MAX: at::maximum_out(first, first, other); return;
    case RedOp::BAND: first.bitwise_and_(other); return;
    case RedOp::BOR: first.bitwise_or_(other); return;
    default: first.bitwise_xor_(other); return;
  }
}

}  // namespace espalier::python
