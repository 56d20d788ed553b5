#pragma once

// Tested by: tests/unit/engine/memory/page_map_test.cpp

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace espalier::engine {

/// That these pages can be replaced by others without anybody noticing: memory of this process alone, which it may read
/// and write. Errors: invalid_input for a mapping of a file, for one that other processes share, and for one that may
/// not be written; unavailable where the system does not tell.
Result<void> check_replaceable(const void* data, std::int64_t bytes);

/// Whether some of these pages are kept from being swapped out (mlock). Cost: a small file where nothing is.
bool is_locked(const void* data, std::int64_t bytes);

}  // namespace espalier::engine
