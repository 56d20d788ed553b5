#pragma once

// Tested by: tests/unit/engine/reduction/copy_test.cpp

#include <cstddef>

namespace espalier::engine::reduction {

/// From how many bytes on a copy in one piece goes past the caches: where the target no longer fits them, fetching its
/// lines before they are overwritten costs a third of the traffic.
inline constexpr std::size_t uncached_copy_bytes = std::size_t{12} << 20;

/// Copies `bytes` bytes between ranges that do not overlap, the faster way for that size.
void copy_bytes(void* to, const void* from, std::size_t bytes);

/// The same with stores that go past the caches: for a piece of a large copy whose target nobody reads soon, and for a
/// target whose lines another core has just read, such as a slot that goes back and forth: plain stores fetch each line
/// from there first (measured on a virtual machine of two Zen 5 cores: 2 GB/s plain, 28 GB/s so). Where this core wrote
/// the target last, plain stores are faster. What is copied is visible to other threads as with any store before a
/// release.
void copy_bytes_uncached(void* to, const void* from, std::size_t bytes);

}  // namespace espalier::engine::reduction
