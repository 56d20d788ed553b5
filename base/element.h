#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace espalier {

/// The element types that a collective moves and adds. The 16-bit floats are added in float32 and rounded once.
enum class ElementType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
};

inline constexpr std::array all_element_types = {
    ElementType::int8,   ElementType::uint8,   ElementType::int32,    ElementType::uint32,  ElementType::int64,
    ElementType::uint64, ElementType::float16, ElementType::bfloat16, ElementType::float32, ElementType::float64};

/// How contributions are combined. `avg` is the sum divided by the number of ranks, rounded towards zero for integers.
enum class ReduceOperation : std::uint8_t { sum, prod, min, max, avg };

inline constexpr std::array all_reduce_operations = {ReduceOperation::sum, ReduceOperation::prod, ReduceOperation::min,
                                                     ReduceOperation::max, ReduceOperation::avg};

/// Bytes of one element.
std::int64_t size_of(ElementType type);

/// "int8", ..., "float64" as nccl-tests prints them: "float" and "double" for the two common ones, "half" for float16.
std::string_view to_string(ElementType type);
/// "sum", "prod", "min", "max", "avg".
std::string_view to_string(ReduceOperation operation);

/// Takes the names of `to_string` and also "float32", "float64", "float16", "fp32", ..., "bf16".
/// Errors: invalid_input, with the nearest name.
Result<ElementType> parse_element_type(std::string_view name);
/// Errors: invalid_input, with the nearest name.
Result<ReduceOperation> parse_reduce_operation(std::string_view name);

}  // namespace espalier
