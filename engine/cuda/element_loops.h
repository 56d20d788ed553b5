#pragma once

#include <cstddef>
#include <cstdint>

#include "base/element.h"

namespace espalier::engine::cuda {

/// target[i] = first[i] op source[i] with the operations of elements.h, on the host; `avg` adds. Pointers need no
/// alignment; `target` may be `first`.
void combine_elements(ElementType type, ReduceOperation operation, void* target, const void* first, const void* source,
                      std::size_t element_count);

/// Divides every element by `ranks`. Requires: ranks > 0.
void divide_elements(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks);

}  // namespace espalier::engine::cuda
