#pragma once

// Tested by: tests/unit/engine/cuda/elements_test.cpp

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// What a GPU's threads call besides the CPU's.
#ifdef __CUDACC__
#define ESPALIER_HOST_DEVICE __host__ __device__
#else
#define ESPALIER_HOST_DEVICE
#endif

/// Element operations that give the bits of engine/reduction/reduce.h with one source, but for those of a NaN.
/// Nothing but integer and float32 or float64 arithmetic, so that every compiler and device agrees; a GPU converts
/// 16-bit floats by its own instructions, which round to nearest even and keep subnormal numbers as well.
namespace espalier::engine::cuda {

template <class To, class From>
ESPALIER_HOST_DEVICE inline To copy_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

/// float16 as its bits.
struct Float16 {
  std::uint16_t bits;

  ESPALIER_HOST_DEVICE static float widen(Float16 value) {
#ifdef __CUDA_ARCH__
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
#else
    const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
    const std::uint32_t exponent = value.bits >> 10U & 0x1FU;
    const std::uint32_t mantissa = value.bits & 0x3FFU;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // Exact.
      return copy_bits<float>(sign | copy_bits<std::uint32_t>(magnitude));
    }
    const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + 112;
    return copy_bits<float>(sign | wide << 23U | mantissa << 13U);
#endif
  }

  /// To nearest even; beyond the largest finite value infinite.
  ESPALIER_HOST_DEVICE static Float16 narrow(float value) {
#ifdef __CUDA_ARCH__
    Float16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
#else
    const auto bits = copy_bits<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16U & 0x8000U;
    std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return {static_cast<std::uint16_t>(sign | 0x7E00U)};
    if (magnitude >= 0x477FF000U) return {static_cast<std::uint16_t>(sign | 0x7C00U)};  // 65520 rounds up.
    if (magnitude >= 0x38800000U) {                                                     // 2^-14: normal.
      magnitude -= 112U << 23U;
      magnitude += 0xFFFU + (magnitude >> 13U & 1U);
      return {static_cast<std::uint16_t>(sign | magnitude >> 13U)};
    }
    const std::uint32_t shift = 126 - (magnitude >> 23U);  // From the float's unit to 2^-24.
    if (shift > 24) return {static_cast<std::uint16_t>(sign)};
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t rest = mantissa & ((1U << shift) - 1);
    const std::uint32_t half = 1U << (shift - 1);
    std::uint32_t units = mantissa >> shift;
    if (rest > half || (rest == half && (units & 1U) != 0)) ++units;
    return {static_cast<std::uint16_t>(sign | units)};
#endif
  }
};

/// bfloat16 as its bits: the upper half of a float32.
struct Bfloat16 {
  std::uint16_t bits;

  ESPALIER_HOST_DEVICE static float widen(Bfloat16 value) {
    return copy_bits<float>(static_cast<std::uint32_t>(value.bits) << 16U);
  }
  /// To nearest even.
  ESPALIER_HOST_DEVICE static Bfloat16 narrow(float value) {
#ifdef __CUDA_ARCH__
    Bfloat16 brain;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(brain.bits) : "f"(value));
    return brain;
#else
    auto bits = copy_bits<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | 0x7FC0U)};
    bits += 0x7FFFU + (bits >> 16U & 1U);
    return {static_cast<std::uint16_t>(bits >> 16U)};
#endif
  }
};

template <class T>
inline constexpr bool is_narrow_float = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

struct Sum {
  template <class T>
  ESPALIER_HOST_DEVICE static T combine(T a, T b) {
    return a + b;
  }
};

struct Product {
  template <class T>
  ESPALIER_HOST_DEVICE static T combine(T a, T b) {
    return a * b;
  }
};

/// IEEE 754-2019 minimum and maximum: a NaN gives NaN, and -0 is below +0.
struct Minimum {
  template <class T>
  ESPALIER_HOST_DEVICE static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!(a <= b || a > b)) return a + b;  // A NaN.
      if (a == b) return is_negative(a) ? a : b;
    }
    return b < a ? b : a;
  }
  template <class T>
  ESPALIER_HOST_DEVICE static bool is_negative(T value) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return copy_bits<Bits>(value) >> (sizeof(T) * 8 - 1) != 0;
  }
};

struct Maximum {
  template <class T>
  ESPALIER_HOST_DEVICE static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!(a <= b || a > b)) return a + b;  // A NaN.
      if (a == b) return Minimum::is_negative(a) ? b : a;
    }
    return a < b ? b : a;
  }
};

/// a op b. Integers wrap, 16-bit floats are combined in float32.
template <class Operation, class T>
ESPALIER_HOST_DEVICE inline T combine(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    return T::narrow(Operation::combine(T::widen(a), T::widen(b)));
  } else if constexpr (std::is_integral_v<T> &&
                       (std::is_same_v<Operation, Sum> || std::is_same_v<Operation, Product>)) {
    using Wide = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
    return static_cast<T>(Operation::combine(static_cast<Wide>(a), static_cast<Wide>(b)));
  } else {
    return Operation::combine(a, b);
  }
}

/// a / ranks: integers towards zero, floats to nearest even. Requires: ranks > 0.
template <class T>
ESPALIER_HOST_DEVICE inline T divide(T a, std::uint32_t ranks) {
  if constexpr (is_narrow_float<T>) {
    return T::narrow(T::widen(a) / static_cast<float>(ranks));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a / static_cast<T>(ranks);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(a) / static_cast<std::int64_t>(ranks));
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(a) / ranks);
  }
}

}  // namespace espalier::engine::cuda
