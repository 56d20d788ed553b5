#include "engine/cuda/element_loops.h"

#include <cstring>

#include "engine/cuda/elements.h"

namespace espalier::engine::cuda {
namespace {

template <class Use>
void with_element(ElementType type, const Use& use) {
  switch (type) {
    case ElementType::int8: return use(std::int8_t());
    case ElementType::uint8: return use(std::uint8_t());
    case ElementType::int32: return use(std::int32_t());
    case ElementType::uint32: return use(std::uint32_t());
    case ElementType::int64: return use(std::int64_t());
    case ElementType::uint64: return use(std::uint64_t());
    case ElementType::float16: return use(Float16());
    case ElementType::bfloat16: return use(Bfloat16());
    case ElementType::float32: return use(float());
    case ElementType::float64: return use(double());
  }
}

template <class Use>
void with_operation(ReduceOperation operation, const Use& use) {
  switch (operation) {
    case ReduceOperation::sum:
    case ReduceOperation::avg: return use(Sum());
    case ReduceOperation::prod: return use(Product());
    case ReduceOperation::min: return use(Minimum());
    case ReduceOperation::max: return use(Maximum());
  }
}

template <class T>
T load(const void* from, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* to, std::size_t index, T value) {
  std::memcpy(static_cast<std::byte*>(to) + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

void combine_elements(ElementType type, ReduceOperation operation, void* target, const void* first, const void* source,
                      std::size_t element_count) {
  with_element(type, [&](auto element) {
    using T = decltype(element);
    with_operation(operation, [&](auto combines) {
      for (std::size_t i = 0; i < element_count; ++i) {
        store(target, i, combine<decltype(combines)>(load<T>(first, i), load<T>(source, i)));
      }
    });
  });
}

void divide_elements(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) {
  with_element(type, [&](auto element) {
    using T = decltype(element);
    for (std::size_t i = 0; i < element_count; ++i) store(data, i, divide(load<T>(data, i), ranks));
  });
}

}  // namespace espalier::engine::cuda
