#include "base/element.h"

#include <string>
#include <utility>

#include "base/suggest.h"

namespace espalier {

namespace {

constexpr std::array<std::string_view, all_element_types.size()> type_names = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "bfloat16", "float", "double"};
constexpr std::array<std::string_view, all_reduce_operations.size()> operation_names = {"sum", "prod", "min", "max",
                                                                                        "avg"};
constexpr std::array<std::pair<std::string_view, ElementType>, 9> other_type_names = {{
    {"float16", ElementType::float16},
    {"fp16", ElementType::float16},
    {"bf16", ElementType::bfloat16},
    {"float32", ElementType::float32},
    {"fp32", ElementType::float32},
    {"float64", ElementType::float64},
    {"fp64", ElementType::float64},
    {"int", ElementType::int32},
    {"char", ElementType::int8},
}};

}  // namespace

std::int64_t size_of(ElementType type) {
  constexpr std::array<std::int64_t, all_element_types.size()> sizes = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
  return sizes[static_cast<std::size_t>(type)];
}

std::string_view to_string(ElementType type) { return type_names[static_cast<std::size_t>(type)]; }

std::string_view to_string(ReduceOperation operation) { return operation_names[static_cast<std::size_t>(operation)]; }

Result<ElementType> parse_element_type(std::string_view name) {
  for (ElementType type : all_element_types) {
    if (to_string(type) == name) {
      return type;
    }
  }
  for (const auto& [other, type] : other_type_names) {
    if (other == name) {
      return type;
    }
  }
  return fail(ErrorCode::invalid_input, "there is no data type '" + std::string(name) + "'", suggest(name, type_names));
}

Result<ReduceOperation> parse_reduce_operation(std::string_view name) {
  for (ReduceOperation operation : all_reduce_operations) {
    if (to_string(operation) == name) {
      return operation;
    }
  }
  return fail(ErrorCode::invalid_input, "there is no reduce operation '" + std::string(name) + "'",
              suggest(name, operation_names));
}

}  // namespace espalier
