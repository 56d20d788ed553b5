#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/element.h"
#include "base/random.h"

namespace espalier::test {

/// One element as its bits, in the low bytes.
using ElementBits = std::uint64_t;

/// The elements of a buffer one by one; the buffer needs no alignment.
ElementBits read_element(ElementType type, const std::byte* buffer, std::size_t index);
void write_element(ElementType type, std::byte* buffer, std::size_t index, ElementBits bits);

/// inputs[0] op inputs[1] op ..., computed element by element: integers in 128 bits, 16-bit floats in float32 and then
/// by search in the sorted list of all their values.
ElementBits scalar_reduce(ElementType type, ReduceOperation operation, const std::vector<ElementBits>& inputs);
ElementBits scalar_divide(ElementType type, ElementBits value, std::uint32_t ranks);

/// Equal bits, or both a NaN.
bool same_element(ElementType type, ElementBits a, ElementBits b);

/// Any bits half of the time (so NaN, infinities and subnormals come up), else a small number.
ElementBits random_element(ElementType type, Random& random);

}  // namespace espalier::test
