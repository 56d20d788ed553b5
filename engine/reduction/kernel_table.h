#pragma once

// Tested by: tests/unit/engine/reduction/reduce_test.cpp

#include <cstddef>
#include <cstdint>

namespace espalier::engine::reduction {

// The table that each kernels_*.cpp fills, in the order of ElementType and ReduceOperation. This header stays free of
// functions and of the standard library's templates: what is compiled here for AVX-512 must never be linked into
// others.

inline constexpr std::size_t element_types = 10;
inline constexpr std::size_t operations = 4;  // avg is sum

struct KernelTable {
  void (*reduce[element_types][operations])(void* target, const void* first, const void* const* sources,
                                            std::size_t source_count, std::size_t element_count);
  void (*reduce_to_many[element_types][operations])(void* const* targets, std::size_t target_count, const void* first,
                                                    const void* const* sources, std::size_t source_count,
                                                    std::size_t element_count);
  void (*divide[element_types])(void* data, std::size_t element_count, std::uint32_t ranks);
};

const KernelTable& plain_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();

}  // namespace espalier::engine::reduction
