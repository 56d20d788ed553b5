#pragma once

// Tested by: tests/property/engine/reduction_test.cpp

// The kernels, written once over vectors of any width. Each kernels_*.cpp includes this file and is compiled for its
// own instructions, so everything here has internal linkage and nothing of the standard library but plain types comes
// in.

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "engine/reduction/kernel_table.h"

namespace espalier::engine::reduction {
namespace {

#define ESPALIER_INLINE [[gnu::always_inline]] static inline

/// `Lanes` numbers in one register.
template <typename Number, std::size_t Lanes>
struct VectorOf {
  using Type [[gnu::vector_size(sizeof(Number) * Lanes)]] = Number;
};
template <typename Number, std::size_t Lanes>
using Vector = typename VectorOf<Number, Lanes>::Type;

template <typename Value>
ESPALIER_INLINE Value load_unaligned(const unsigned char* from) {
  Value value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

// A format says how elements are loaded (Stored), in what they are combined (Wide), and how they get there and back.

/// Elements that are combined as they are stored.
template <typename Number, std::size_t Bytes>
struct Direct {
  static constexpr std::size_t element_bytes = sizeof(Number);
  using Stored = Vector<Number, Bytes / sizeof(Number)>;
  using Wide = Stored;
  ESPALIER_INLINE Wide widen(Stored stored) { return stored; }
  ESPALIER_INLINE Stored narrow(Wide wide) { return wide; }
  template <typename Operation>
  ESPALIER_INLINE Wide combine(Wide a, Wide b) {
    return Operation::apply(a, b);
  }
  ESPALIER_INLINE Wide divide(Wide a, std::uint32_t divisor) { return a / static_cast<Number>(divisor); }
};

/// bfloat16 is the upper half of a float32. A register of them holds the even elements in the lower halves of its words
/// and the odd ones in the upper, so both become float32 without moving between lanes.
template <std::size_t Bytes>
struct BrainFloat {
  static constexpr std::size_t element_bytes = 2;
  using Stored = Vector<std::uint32_t, Bytes / sizeof(float)>;
  using Floats = Vector<float, Bytes / sizeof(float)>;
  struct Wide {
    Floats even;
    Floats odd;
  };

  ESPALIER_INLINE Wide widen(Stored stored) { return {(Floats)(stored << 16), (Floats)(stored & 0xffff0000)}; }
  ESPALIER_INLINE Stored narrow(Wide wide) { return round(wide.even) >> 16 | (round(wide.odd) & 0xffff0000); }
  template <typename Operation>
  ESPALIER_INLINE Wide combine(Wide a, Wide b) {
    return {Operation::apply(a.even, b.even), Operation::apply(a.odd, b.odd)};
  }
  ESPALIER_INLINE Wide divide(Wide a, std::uint32_t divisor) {
    const auto by = static_cast<float>(divisor);
    return {a.even / by, a.odd / by};
  }

 private:
  /// The result is in the upper half of each word.
  ESPALIER_INLINE Stored round(Floats floats) {
    const Stored bits = (Stored)floats;
    // Half of the last kept place, less one where that place is even: a carry out of it is the rounding to even.
    const Stored rounded = bits + 0x7fff + ((bits >> 16) & 1);
    const Stored quiet = bits | 0x400000;
    return floats != floats ? quiet : rounded;  // NOLINT(misc-redundant-expression): a NaN
  }
};

template <std::size_t Bytes>
struct HalfFloat {
  static constexpr std::size_t element_bytes = 2;
  static constexpr std::size_t lanes = Bytes / sizeof(float);
  using Stored = Vector<std::uint16_t, lanes>;
  using Wide = Vector<float, lanes>;
  using Bits = Vector<std::uint32_t, lanes>;

  ESPALIER_INLINE Wide widen(Stored stored) {
#ifdef __F16C__
    if constexpr (Bytes == 32) return (Wide)_mm256_cvtph_ps((__m128i)stored);
#endif
#ifdef __AVX512F__
    if constexpr (Bytes == 64) return (Wide)_mm512_maskz_cvtph_ps(0xffff, (__m256i)stored);
#endif
    const Bits half = __builtin_convertvector(stored, Bits);
    // Both fields in float32's places, then the exponent's bias mended by 2^(127 - 15), which normalises subnormals
    // too.
    const Bits scale = Bits{} + 0x77800000;
    const Bits finite = (Bits)((Wide)((half & 0x7fff) << 13) * (Wide)scale);
    const Bits magnitude = (half & 0x7c00) == 0x7c00 ? finite | 0x7f800000 : finite;
    return (Wide)(magnitude | (half & 0x8000) << 16);
  }
  ESPALIER_INLINE Stored narrow(Wide wide) {
#ifdef __F16C__
    if constexpr (Bytes == 32) return (Stored)_mm256_cvtps_ph((__m256)wide, _MM_FROUND_TO_NEAREST_INT);
#endif
#ifdef __AVX512F__
    if constexpr (Bytes == 64) return (Stored)_mm512_maskz_cvtps_ph(0xffff, (__m512)wide, _MM_FROUND_TO_NEAREST_INT);
#endif
    const Bits bits = (Bits)wide;
    const Bits magnitude = bits & 0x7fffffff;
    // Normal: the bias changed and rounded to even as in BrainFloat; a carry past the last exponent gives infinity.
    const Bits normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Below 2^-14: the last place of 0.5 is the last place of a subnormal half, so the addition rounds.
    const Bits one_half = Bits{} + 0x3f000000;
    const Bits subnormal = (Bits)((Wide)magnitude + (Wide)one_half) - one_half;
    const Bits infinity = Bits{} + 0x7c00;
    const Bits not_a_number = Bits{} + 0x7e00;
    Bits result = magnitude < 0x38800000 ? subnormal : normal;
    result = magnitude >= 0x47800000 ? infinity : result;
    result = magnitude > 0x7f800000 ? not_a_number : result;
    return __builtin_convertvector(result | (bits & 0x80000000) >> 16, Stored);
  }
  template <typename Operation>
  ESPALIER_INLINE Wide combine(Wide a, Wide b) {
    return Operation::apply(a, b);
  }
  ESPALIER_INLINE Wide divide(Wide a, std::uint32_t divisor) { return a / static_cast<float>(divisor); }
};

struct Sum {
  template <typename Wide>
  ESPALIER_INLINE Wide apply(Wide a, Wide b) {
    return a + b;
  }
};

struct Product {
  template <typename Wide>
  ESPALIER_INLINE Wide apply(Wide a, Wide b) {
    return a * b;
  }
};

struct Minimum {
  template <typename Wide>
  ESPALIER_INLINE Wide apply(Wide a, Wide b) {
    return a < b ? a : b;
  }
};

struct Maximum {
  template <typename Wide>
  ESPALIER_INLINE Wide apply(Wide a, Wide b) {
    return a > b ? a : b;
  }
};

// Floats that compare equal have equal bits or are two zeros; then `or` keeps a minus and `and` drops it.

struct FloatMinimum {
  template <typename Wide>
  ESPALIER_INLINE Wide apply(Wide a, Wide b) {
    const auto equal = a == b;
    const auto both = (decltype(equal))a | (decltype(equal))b;
    const Wide lesser = ((a < b) | (a != a)) ? a : b;  // NOLINT(misc-redundant-expression): a NaN
    return equal ? (Wide)both : lesser;
  }
};

struct FloatMaximum {
  template <typename Wide>
  ESPALIER_INLINE Wide apply(Wide a, Wide b) {
    const auto equal = a == b;
    const auto both = (decltype(equal))a & (decltype(equal))b;
    const Wide greater = ((a > b) | (a != a)) ? a : b;  // NOLINT(misc-redundant-expression): a NaN
    return equal ? (Wide)both : greater;
  }
};

/// What a kernel is called with, as bytes.
struct Call {
  void* const* targets;
  std::size_t target_count;
  const unsigned char* first;
  const void* const* sources;
  std::size_t source_count;
};

ESPALIER_INLINE const unsigned char* source_of(const Call& call, std::size_t index, std::size_t at) {
  return static_cast<const unsigned char*>(call.sources[index]) + at;
}

/// Combines `Vectors` registers at a time over all sources before it stores them.
template <typename Format, typename Operation, std::size_t Vectors>
ESPALIER_INLINE void reduce_step(const Call& call, std::size_t at) {
  using Stored = typename Format::Stored;
  constexpr std::size_t step = sizeof(Stored);
  typename Format::Wide sum[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) sum[v] = Format::widen(load_unaligned<Stored>(call.first + at + v * step));
  for (std::size_t s = 0; s < call.source_count; ++s) {
    const unsigned char* source = source_of(call, s, at);
    for (std::size_t v = 0; v < Vectors; ++v) {
      sum[v] = Format::template combine<Operation>(sum[v], Format::widen(load_unaligned<Stored>(source + v * step)));
    }
  }
  Stored result[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) result[v] = Format::narrow(sum[v]);
  for (std::size_t t = 0; t < call.target_count; ++t) {
    unsigned char* target = static_cast<unsigned char*>(call.targets[t]) + at;
    for (std::size_t v = 0; v < Vectors; ++v) __builtin_memcpy(target + v * step, &result[v], step);
  }
}

/// Fewer elements than fill a register, in copies filled up with zeros.
template <typename Format, typename Operation>
ESPALIER_INLINE void reduce_part(const Call& call, std::size_t at, std::size_t bytes) {
  using Stored = typename Format::Stored;
  Stored padded{};
  __builtin_memcpy(&padded, call.first + at, bytes);
  typename Format::Wide sum = Format::widen(padded);
  for (std::size_t s = 0; s < call.source_count; ++s) {
    __builtin_memcpy(&padded, source_of(call, s, at), bytes);
    sum = Format::template combine<Operation>(sum, Format::widen(padded));
  }
  padded = Format::narrow(sum);
  for (std::size_t t = 0; t < call.target_count; ++t) {
    __builtin_memcpy(static_cast<unsigned char*>(call.targets[t]) + at, &padded, bytes);
  }
}

template <typename Format, typename Operation>
ESPALIER_INLINE void reduce_all(const Call& call, std::size_t element_count) {
  constexpr std::size_t step = sizeof(typename Format::Stored);
  constexpr std::size_t unroll = 4;
  const std::size_t bytes = element_count * Format::element_bytes;
  std::size_t at = 0;
  // An access across two cache lines costs two. Buffers mostly lie alike within a line, so aligning one aligns all.
  const std::size_t lead = (0 - reinterpret_cast<std::uintptr_t>(call.targets[0])) % step;
  if (lead % Format::element_bytes == 0 && lead != 0 && bytes > 2 * unroll * step) {
    reduce_part<Format, Operation>(call, 0, lead);
    at = lead;
  }
  for (; bytes - at >= unroll * step; at += unroll * step) reduce_step<Format, Operation, unroll>(call, at);
  for (; bytes - at >= step; at += step) reduce_step<Format, Operation, 1>(call, at);
  if (at < bytes) reduce_part<Format, Operation>(call, at, bytes - at);
}

template <typename Format, typename Operation>
void reduce(void* target, const void* first, const void* const* sources, std::size_t source_count,
            std::size_t element_count) {
  const Call call{&target, 1, static_cast<const unsigned char*>(first), sources, source_count};
  reduce_all<Format, Operation>(call, element_count);
}

template <typename Format, typename Operation>
void reduce_to_many(void* const* targets, std::size_t target_count, const void* first, const void* const* sources,
                    std::size_t source_count, std::size_t element_count) {
  const Call call{targets, target_count, static_cast<const unsigned char*>(first), sources, source_count};
  reduce_all<Format, Operation>(call, element_count);
}

template <typename Format>
void divide_floats(void* data, std::size_t element_count, std::uint32_t ranks) {
  using Stored = typename Format::Stored;
  auto* bytes = static_cast<unsigned char*>(data);
  const std::size_t size = element_count * Format::element_bytes;
  std::size_t at = 0;
  for (; size - at >= sizeof(Stored); at += sizeof(Stored)) {
    const Stored stored = load_unaligned<Stored>(bytes + at);
    const Stored quotient = Format::narrow(Format::divide(Format::widen(stored), ranks));
    __builtin_memcpy(bytes + at, &quotient, sizeof(Stored));
  }
  if (at == size) return;
  Stored padded{};
  __builtin_memcpy(&padded, bytes + at, size - at);
  padded = Format::narrow(Format::divide(Format::widen(padded), ranks));
  __builtin_memcpy(bytes + at, &padded, size - at);
}

/// Divides in `Exact`, a type in which truncating the rounded quotient is right: a quotient that is no integer is at
/// least 1/ranks below the next one, which is more than half a place while the product of both fits the mantissa.
template <typename Number, typename Exact>
void divide_integers(void* data, std::size_t element_count, std::uint32_t ranks) {
  auto* bytes = static_cast<unsigned char*>(data);
  const auto divisor = static_cast<Exact>(ranks);
  for (std::size_t i = 0; i < element_count; ++i) {
    const auto value = load_unaligned<Number>(bytes + i * sizeof(Number));
    const auto quotient = static_cast<Number>(static_cast<Exact>(value) / divisor);
    __builtin_memcpy(bytes + i * sizeof(Number), &quotient, sizeof(Number));
  }
}

template <std::size_t Type, std::size_t Index, typename Format, typename Operation>
constexpr void add(KernelTable& table) {
  table.reduce[Type][Index] = reduce<Format, Operation>;
  table.reduce_to_many[Type][Index] = reduce_to_many<Format, Operation>;
}

/// Sums and products run on unsigned numbers, which wrap and have the same bits.
template <std::size_t Type, typename Number, typename Unsigned, std::size_t Bytes>
constexpr void add_integers(KernelTable& table) {
  add<Type, 0, Direct<Unsigned, Bytes>, Sum>(table);
  add<Type, 1, Direct<Unsigned, Bytes>, Product>(table);
  add<Type, 2, Direct<Number, Bytes>, Minimum>(table);
  add<Type, 3, Direct<Number, Bytes>, Maximum>(table);
}

template <std::size_t Type, typename Format>
constexpr void add_floats(KernelTable& table) {
  add<Type, 0, Format, Sum>(table);
  add<Type, 1, Format, Product>(table);
  add<Type, 2, Format, FloatMinimum>(table);
  add<Type, 3, Format, FloatMaximum>(table);
  table.divide[Type] = divide_floats<Format>;
}

template <std::size_t Bytes>
constexpr KernelTable make_table() {
  KernelTable table{};
  add_integers<0, std::int8_t, std::uint8_t, Bytes>(table);
  add_integers<1, std::uint8_t, std::uint8_t, Bytes>(table);
  add_integers<2, std::int32_t, std::uint32_t, Bytes>(table);
  add_integers<3, std::uint32_t, std::uint32_t, Bytes>(table);
  add_integers<4, std::int64_t, std::uint64_t, Bytes>(table);
  add_integers<5, std::uint64_t, std::uint64_t, Bytes>(table);
  add_floats<6, HalfFloat<Bytes>>(table);
  add_floats<7, BrainFloat<Bytes>>(table);
  add_floats<8, Direct<float, Bytes>>(table);
  add_floats<9, Direct<double, Bytes>>(table);
  table.divide[0] = divide_integers<std::int8_t, float>;
  table.divide[1] = divide_integers<std::uint8_t, float>;
  table.divide[2] = divide_integers<std::int32_t, double>;
  table.divide[3] = divide_integers<std::uint32_t, double>;
  table.divide[4] = divide_integers<std::int64_t, std::int64_t>;
  table.divide[5] = divide_integers<std::uint64_t, std::uint64_t>;
  return table;
}

#undef ESPALIER_INLINE

}  // namespace
}  // namespace espalier::engine::reduction
