#pragma once

// Tested by: tests/unit/engine/cuda/kernels/bulk_copy_test.cpp

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/cuda/elements.h"

/// Of kernels: a GPU's threads under nvcc, else the host's.
#ifdef __CUDACC__
#define ESPALIER_KERNEL_CODE __device__ __forceinline__
#define ESPALIER_UNROLL _Pragma("unroll")
#define ESPALIER_ROLLED _Pragma("unroll 1")
#else
#define ESPALIER_KERNEL_CODE inline
#define ESPALIER_UNROLL
#define ESPALIER_ROLLED
#endif

/// Copies, reductions and divisions of ranges by a team of threads, in 16-byte accesses where addresses allow. A team
/// has `index()` and `size()`; on the host it is one thread. Addresses are multiples of the element's size.
namespace espalier::engine::cuda {

/// What one access moves.
struct alignas(16) Vector {
  std::uint32_t words[4];
};

/// Loads that a thread has in flight before it uses the first: of each buffer. Small elements are unpacked to a
/// register each, so that there is room for fewer vectors; minima of floats, which keep NaNs, take registers as well.
inline constexpr std::uint64_t loads_in_flight = 4;
template <class T, class Operation>
inline constexpr std::uint64_t combined_in_flight =
    sizeof(T) == 1                                                                                              ? 1
    : sizeof(T) == 2                                                                                            ? 2
    : std::is_floating_point_v<T> && (std::is_same_v<Operation, Minimum> || std::is_same_v<Operation, Maximum>) ? 2
                                                                                                                : 4;

template <class T>
ESPALIER_KERNEL_CODE T load(const unsigned char* from, std::uint64_t index) {
#ifdef __CUDA_ARCH__
  return reinterpret_cast<const T*>(from)[index];
#else
  T value;
  memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
#endif
}

template <class T>
ESPALIER_KERNEL_CODE void store(unsigned char* to, std::uint64_t index, T value) {
#ifdef __CUDA_ARCH__
  reinterpret_cast<T*>(to)[index] = value;
#else
  memcpy(to + index * sizeof(T), &value, sizeof(T));
#endif
}

#ifdef __CUDA_ARCH__
template <>
__device__ __forceinline__ Vector load<Vector>(const unsigned char* from, std::uint64_t index) {
  const uint4 words = reinterpret_cast<const uint4*>(from)[index];
  return {{words.x, words.y, words.z, words.w}};
}
template <>
__device__ __forceinline__ void store<Vector>(unsigned char* to, std::uint64_t index, Vector value) {
  reinterpret_cast<uint4*>(to)[index] = make_uint4(value.words[0], value.words[1], value.words[2], value.words[3]);
}
#endif

/// The part of a range that 16-byte accesses reach: elements before it, and vectors; the rest are elements again.
struct VectorRange {
  std::uint64_t head = 0;
  std::uint64_t vectors = 0;
};

/// `misalignment`: bitwise or of the differences between the addresses.
template <class T>
ESPALIER_KERNEL_CODE VectorRange vectors_of(const void* target, std::uint64_t misalignment, std::uint64_t elements) {
  const std::uint64_t before = (16 - reinterpret_cast<std::uintptr_t>(target) % 16) % 16;
  if (misalignment % 16 != 0 || before % sizeof(T) != 0) return {elements, 0};
  const std::uint64_t head = before / sizeof(T) < elements ? before / sizeof(T) : elements;
  return {head, (elements - head) * sizeof(T) / 16};
}

ESPALIER_KERNEL_CODE std::uint64_t distance(const void* a, const void* b) {
  return reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
}

#ifdef __CUDA_ARCH__
/// Four bytes at a time, as GPUs combine them; products have no such instruction.
template <class T, class Operation>
__device__ __forceinline__ std::uint32_t combine_bytes(std::uint32_t a, std::uint32_t b) {
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (std::is_same_v<Operation, Sum>) {
    return __vadd4(a, b);
  } else if constexpr (std::is_same_v<Operation, Minimum>) {
    return is_signed ? __vmins4(a, b) : __vminu4(a, b);
  } else {
    return is_signed ? __vmaxs4(a, b) : __vmaxu4(a, b);
  }
}
#endif

template <class T, class Operation>
ESPALIER_KERNEL_CODE Vector combine_vectors(const Vector& a, const Vector& b) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 1 && !std::is_same_v<Operation, Product>) {
    Vector combined;
    ESPALIER_UNROLL
    for (int word = 0; word < 4; ++word)
      combined.words[word] = combine_bytes<T, Operation>(a.words[word], b.words[word]);
    return combined;
  }
#endif
  constexpr std::size_t lanes = 16 / sizeof(T);
  T left[lanes];
  T right[lanes];
  memcpy(left, &a, 16);
  memcpy(right, &b, 16);
  ESPALIER_UNROLL
  for (std::size_t lane = 0; lane < lanes; ++lane) left[lane] = combine<Operation>(left[lane], right[lane]);
  Vector result;
  memcpy(&result, left, 16);
  return result;
}

/// Calls of each (index) for those elements of a range that vectors leave out.
template <class T, class Team, class Each>
ESPALIER_KERNEL_CODE void each_loose(const Team& team, const VectorRange& range, std::uint64_t elements,
                                     const Each& each) {
  ESPALIER_ROLLED
  for (std::uint64_t i = team.index(); i < range.head; i += team.size()) each(i);
  const std::uint64_t tail = range.head + range.vectors * 16 / sizeof(T);
  ESPALIER_ROLLED
  for (std::uint64_t i = tail + team.index(); i < elements; i += team.size()) each(i);
}

/// No destination but the target.
struct NoOthers {
  static constexpr bool is_none = true;
  [[nodiscard]] ESPALIER_KERNEL_CODE static std::uint32_t count() { return 0; }
  [[nodiscard]] ESPALIER_KERNEL_CODE static unsigned char* at(std::uint32_t) { return nullptr; }
};

/// How far the other destinations' alignments are from the target's: bitwise or.
template <class Others>
ESPALIER_KERNEL_CODE std::uint64_t misalignment_of(const unsigned char* target, const Others& others) {
  std::uint64_t misalignment = 0;
  ESPALIER_ROLLED
  for (std::uint32_t d = 0; d < others.count(); ++d) misalignment |= distance(target, others.at(d));
  return misalignment;
}

/// `values[u]` to place i + u x stride of the target and of all other destinations, each `skip` bytes on.
template <std::uint64_t count, class Value, class Others>
ESPALIER_KERNEL_CODE void store_all(unsigned char* target, const Others& others, std::uint64_t skip, std::uint64_t i,
                                    std::uint64_t stride, const Value (&values)[count]) {
  ESPALIER_UNROLL
  for (std::uint64_t u = 0; u < count; ++u) store(target + skip, i + u * stride, values[u]);
  ESPALIER_ROLLED
  for (std::uint32_t d = 0; d < others.count(); ++d) {
    unsigned char* const other = others.at(d) + skip;
    ESPALIER_UNROLL
    for (std::uint64_t u = 0; u < count; ++u) store(other, i + u * stride, values[u]);
  }
}

/// target = source, and all others.
template <class T, class Team, class Others = NoOthers>
ESPALIER_KERNEL_CODE void copy_range(const Team& team, unsigned char* target, const unsigned char* source,
                                     std::uint64_t elements, const Others& others = {}) {
  const std::uint64_t misalignment = distance(target, source) | misalignment_of(target, others);
  const VectorRange range = vectors_of<T>(target, misalignment, elements);
  each_loose<T>(team, range, elements, [&](std::uint64_t i) {
    const T value[1] = {load<T>(source, i)};
    store_all(target, others, 0, i, 0, value);
  });
  const std::uint64_t head = range.head * sizeof(T);
  const unsigned char* const from = source + head;
  const std::uint64_t stride = team.size();
  std::uint64_t i = team.index();
  ESPALIER_ROLLED
  for (; i + (loads_in_flight - 1) * stride < range.vectors; i += loads_in_flight * stride) {
    Vector loaded[loads_in_flight];
    ESPALIER_UNROLL
    for (std::uint64_t u = 0; u < loads_in_flight; ++u) loaded[u] = load<Vector>(from, i + u * stride);
    store_all(target, others, head, i, stride, loaded);
  }
  ESPALIER_ROLLED
  for (; i < range.vectors; i += stride) {
    const Vector value[1] = {load<Vector>(from, i)};
    store_all(target, others, head, i, 0, value);
  }
}

/// target = first op source, and all others; `target` may be `first`.
template <class T, class Operation, class Team, class Others = NoOthers>
ESPALIER_KERNEL_CODE void combine_range(const Team& team, unsigned char* target, const unsigned char* first,
                                        const unsigned char* source, std::uint64_t elements,
                                        const Others& others = {}) {
  const std::uint64_t misalignment =
      distance(target, first) | distance(target, source) | misalignment_of(target, others);
  const VectorRange range = vectors_of<T>(target, misalignment, elements);
  each_loose<T>(team, range, elements, [&](std::uint64_t i) {
    const T value[1] = {combine<Operation>(load<T>(first, i), load<T>(source, i))};
    store_all(target, others, 0, i, 0, value);
  });
  const std::uint64_t head = range.head * sizeof(T);
  const unsigned char* const a = first + head;
  const unsigned char* const b = source + head;
  // Addresses of others take registers.
  constexpr std::uint64_t in_flight = Others::is_none ? combined_in_flight<T, Operation> : 1;
  const std::uint64_t stride = team.size();
  std::uint64_t i = team.index();
  ESPALIER_ROLLED
  for (; i + (in_flight - 1) * stride < range.vectors; i += in_flight * stride) {
    Vector left[in_flight];
    Vector right[in_flight];
    ESPALIER_UNROLL
    for (std::uint64_t u = 0; u < in_flight; ++u) {
      left[u] = load<Vector>(a, i + u * stride);
      right[u] = load<Vector>(b, i + u * stride);
    }
    ESPALIER_UNROLL
    for (std::uint64_t u = 0; u < in_flight; ++u) left[u] = combine_vectors<T, Operation>(left[u], right[u]);
    store_all(target, others, head, i, stride, left);
  }
  if constexpr (in_flight > 1) {
    ESPALIER_ROLLED
    for (; i < range.vectors; i += stride) {
      const Vector value[1] = {combine_vectors<T, Operation>(load<Vector>(a, i), load<Vector>(b, i))};
      store_all(target, others, head, i, 0, value);
    }
  }
}

/// data /= ranks.
template <class T, class Team>
ESPALIER_KERNEL_CODE void divide_range(const Team& team, unsigned char* data, std::uint64_t elements,
                                       std::uint32_t ranks) {
  ESPALIER_ROLLED
  for (std::uint64_t i = team.index(); i < elements; i += team.size()) store(data, i, divide(load<T>(data, i), ranks));
}

/// What sums of a type are kept in until they are rounded.
template <class T, bool = is_narrow_float<T>>
struct Accumulator {
  using Type = T;
  ESPALIER_KERNEL_CODE static T from(T value) { return value; }
  ESPALIER_KERNEL_CODE static T round(T value) { return value; }
};

template <class T>
struct Accumulator<T, true> {
  using Type = float;
  ESPALIER_KERNEL_CODE static float from(T value) { return T::widen(value); }
  ESPALIER_KERNEL_CODE static T round(float value) { return T::narrow(value); }
};

/// Every target = first op sources[0] op sources[1] ..., in that order; 16-bit floats are rounded once. A target may be
/// `first` or a source.
template <class T, class Operation, class Team, class Call>
ESPALIER_KERNEL_CODE void reduce_many(const Team& team, const Call& call) {
  using Kept = Accumulator<T>;
  constexpr std::size_t lanes = 16 / sizeof(T);
  std::uint64_t misalignment = 0;
  ESPALIER_ROLLED
  for (std::uint32_t i = 0; i < call.target_count; ++i) misalignment |= distance(call.targets[i], call.first);
  ESPALIER_ROLLED
  for (std::uint32_t i = 0; i < call.source_count; ++i) misalignment |= distance(call.sources[i], call.first);
  const VectorRange range = vectors_of<T>(call.first, misalignment, call.element_count);
  each_loose<T>(team, range, call.element_count, [&](std::uint64_t i) {
    auto sum = Kept::from(load<T>(call.first, i));
    ESPALIER_ROLLED
    for (std::uint32_t s = 0; s < call.source_count; ++s) {
      sum = combine<Operation>(sum, Kept::from(load<T>(call.sources[s], i)));
    }
    ESPALIER_ROLLED
    for (std::uint32_t t = 0; t < call.target_count; ++t) store(call.targets[t], i, Kept::round(sum));
  });
  const std::uint64_t head = range.head * sizeof(T);
  ESPALIER_ROLLED
  for (std::uint64_t i = team.index(); i < range.vectors; i += team.size()) {
    T elements[lanes];
    typename Kept::Type sums[lanes];
    Vector vector = load<Vector>(call.first + head, i);
    memcpy(elements, &vector, 16);
    ESPALIER_UNROLL
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] = Kept::from(elements[lane]);
    ESPALIER_ROLLED
    for (std::uint32_t s = 0; s < call.source_count; ++s) {
      vector = load<Vector>(call.sources[s] + head, i);
      memcpy(elements, &vector, 16);
      ESPALIER_UNROLL
      for (std::size_t lane = 0; lane < lanes; ++lane)
        sums[lane] = combine<Operation>(sums[lane], Kept::from(elements[lane]));
    }
    ESPALIER_UNROLL
    for (std::size_t lane = 0; lane < lanes; ++lane) elements[lane] = Kept::round(sums[lane]);
    memcpy(&vector, elements, 16);
    ESPALIER_ROLLED
    for (std::uint32_t t = 0; t < call.target_count; ++t) store(call.targets[t] + head, i, vector);
  }
}

}  // namespace espalier::engine::cuda
