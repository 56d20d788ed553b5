#pragma once

// Tested by: tests/unit/engine/check/data_case_test.cpp

#include <cstdint>

/// Of kernels, too: plain code, alike for nvcc and for the host's compiler.
#ifdef __CUDACC__
#define ESPALIER_PATTERN_CODE __host__ __device__ __forceinline__
#else
#define ESPALIER_PATTERN_CODE inline
#endif

namespace espalier::engine {

/// Known data is a message in blocks, each a window of one short table; a hash of the block's number says where in the
/// table. So it is written and compared as fast as memory is, and blocks in each other's places are noticed.
inline constexpr std::uint32_t pattern_block = 256;    ///< Elements.
inline constexpr std::uint32_t pattern_places = 4096;  ///< Where windows may begin.
/// Elements of a table: it begins anew behind the last place, so that no window has to.
inline constexpr std::uint32_t pattern_table = pattern_places + pattern_block;

/// The table's element that stands at an element of the message. `shift`: of one rank's data against another's.
ESPALIER_PATTERN_CODE std::uint64_t pattern_element(std::uint64_t at, std::uint64_t salt, std::uint64_t shift) {
  std::uint64_t mixed = at / pattern_block + salt;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;  // SplitMix64's, as in base/random.h.
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return (((mixed ^ (mixed >> 31U)) + shift) % pattern_places) + at % pattern_block;
}

/// Elements of a buffer that hold known data: from `begin` on those of a message from `first` on.
struct PatternRange {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t first = 0;
  std::uint64_t shift = 0;
};

/// The parameter of the kernel that writes or compares a range; all memory is the device's.
struct PatternCall {
  unsigned char* data = nullptr;         ///< The range's first element.
  const unsigned char* table = nullptr;  ///< `pattern_table` elements.
  std::uint64_t* differing = nullptr;    ///< Compares, and adds the elements that differ in a bit; null: writes.
  PatternRange range;
  std::uint64_t salt = 0;
  std::uint32_t element_size = 1;
};

}  // namespace espalier::engine
