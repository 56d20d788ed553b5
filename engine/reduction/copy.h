#pragma once

#include <cstddef>

namespace espalier {

/// Copies `bytes` bytes between ranges that do not overlap.
void copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace espalier
