#pragma once

// Tested by: tests/unit/engine/check/data_case_test.cpp

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/element.h"

/// How numbers are stored in each element type, apart from the code that the engine adds them with: what is checked
/// does not check itself.
namespace espalier::engine {

template <class Stored>
struct PlainCodec {
  using Type = Stored;
  static Stored encode(double value) {
    if constexpr (std::is_integral_v<Stored>) return static_cast<Stored>(static_cast<std::int64_t>(value));
    return static_cast<Stored>(value);
  }
  static double decode(Stored value) { return static_cast<double>(value); }
  static constexpr double rounding = std::is_same_v<Stored, float> ? 0x1p-23 : 0x1p-52;
};

/// Numbers that are not negative, and either 0 or from 2^-14 on.
struct HalfCodec {
  using Type = std::uint16_t;
  static Type encode(double value) {
    if (value == 0) return 0;
    const int exponent = std::ilogb(value);
    const auto mantissa = std::llrint(std::ldexp(value, 10 - exponent));  // 1024 to 2048.
    return static_cast<Type>(((exponent + 14) << 10) + mantissa);
  }
  static double decode(Type bits) {
    const int exponent = bits >> 10 & 0x1F;
    const int mantissa = bits & 0x3FF;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 0x1F) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(mantissa + 1024, exponent - 25);
  }
  static constexpr double rounding = 0x1p-10;
};

struct BfloatCodec {
  using Type = std::uint16_t;
  static Type encode(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return static_cast<Type>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U);  // To the nearest, of two to the even one.
  }
  static double decode(Type bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
  static constexpr double rounding = 0x1p-7;
};

/// Calls with the codec of the type.
template <class Use>
auto with_codec(ElementType type, const Use& use) {
  switch (type) {
    case ElementType::int8: return use(PlainCodec<std::int8_t>());
    case ElementType::uint8: return use(PlainCodec<std::uint8_t>());
    case ElementType::int32: return use(PlainCodec<std::int32_t>());
    case ElementType::uint32: return use(PlainCodec<std::uint32_t>());
    case ElementType::int64: return use(PlainCodec<std::int64_t>());
    case ElementType::uint64: return use(PlainCodec<std::uint64_t>());
    case ElementType::float16: return use(HalfCodec());
    case ElementType::bfloat16: return use(BfloatCodec());
    case ElementType::float32: return use(PlainCodec<float>());
    case ElementType::float64: break;
  }
  return use(PlainCodec<double>());
}

constexpr bool is_float(ElementType type) { return type >= ElementType::float16; }

}  // namespace espalier::engine
