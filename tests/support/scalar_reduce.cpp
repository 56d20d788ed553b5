#include "tests/support/scalar_reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace espalier::test {
namespace {

using Wide = __int128;

/// A 16-bit float: one sign, `exponent_bits`, and the rest mantissa.
struct SmallFloat {
  int exponent_bits;

  int mantissa_bits() const { return 15 - exponent_bits; }
  std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << mantissa_bits(); }

  /// The value of a code without sign; that of infinity is what the next exponent would mean, so that it rounds as
  /// such.
  double magnitude(std::uint32_t code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int>(code >> mantissa_bits());
    const double mantissa = code & ((1U << mantissa_bits()) - 1);
    const double hidden = exponent == 0 ? 0 : std::ldexp(1.0, mantissa_bits());
    return std::ldexp(mantissa + hidden, std::max(exponent, 1) - bias - mantissa_bits());
  }

  float decode(ElementBits bits) const {
    const auto code = static_cast<std::uint32_t>(bits & 0x7fff);
    float value = static_cast<float>(magnitude(code));
    if (code == infinity()) value = std::numeric_limits<float>::infinity();
    if (code > infinity()) value = std::numeric_limits<float>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -value : value;
  }

  ElementBits encode(float value) const {
    if (std::isnan(value)) return infinity() + 1;
    const ElementBits sign = std::signbit(value) ? 0x8000 : 0;
    const double wanted = std::fabs(value);
    if (wanted >= magnitude(infinity())) return sign | infinity();
    std::uint32_t below = 0;
    for (std::uint32_t above = infinity(); above - below > 1;) {
      const std::uint32_t middle = (below + above) / 2;
      (magnitude(middle) <= wanted ? below : above) = middle;
    }
    const double low = wanted - magnitude(below);
    const double high = magnitude(below + 1) - wanted;
    const bool up = high < low || (high == low && below % 2 == 1);
    return sign | (below + (up ? 1 : 0));
  }
};

constexpr SmallFloat float16{5};
constexpr SmallFloat bfloat16{8};

template <typename Float>
Float combine_floats(ReduceOperation operation, Float a, Float b) {
  if (operation == ReduceOperation::prod) return a * b;
  if (operation != ReduceOperation::min && operation != ReduceOperation::max) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Float>::quiet_NaN();
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return a_is_less == (operation == ReduceOperation::min) ? a : b;
}

Wide combine_integers(ReduceOperation operation, Wide a, Wide b) {
  switch (operation) {
    // Both below 2^64 in magnitude; in unsigned arithmetic because the product of two uint64 may need all 128 bits.
    case ReduceOperation::prod:
      return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    case ReduceOperation::min: return std::min(a, b);
    case ReduceOperation::max: return std::max(a, b);
    default: return a + b;
  }
}

bool is_signed(ElementType type) {
  return type == ElementType::int8 || type == ElementType::int32 || type == ElementType::int64;
}

ElementBits keep_bits(ElementType type, ElementBits bits) {
  const auto width = static_cast<unsigned>(8 * size_of(type));
  return width == 64 ? bits : bits & ((ElementBits{1} << width) - 1);
}

Wide decode_integer(ElementType type, ElementBits bits) {
  const auto width = static_cast<unsigned>(8 * size_of(type));
  const bool negative = is_signed(type) && ((bits >> (width - 1)) & 1) != 0;
  return static_cast<Wide>(bits) - (negative ? static_cast<Wide>(1) << width : 0);
}

float decode_float(ElementType type, ElementBits bits) {
  if (type == ElementType::float16) return float16.decode(bits);
  if (type == ElementType::bfloat16) return bfloat16.decode(bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

ElementBits encode_float(ElementType type, float value) {
  if (type == ElementType::float16) return float16.encode(value);
  if (type == ElementType::bfloat16) return bfloat16.encode(value);
  return std::bit_cast<std::uint32_t>(value);
}

bool is_float(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 || type == ElementType::float32;
}

}  // namespace

ElementBits read_element(ElementType type, const std::byte* buffer, std::size_t index) {
  const auto size = static_cast<std::size_t>(size_of(type));
  ElementBits bits = 0;
  std::memcpy(&bits, buffer + index * size, size);  // little endian, as every machine that we run on
  return bits;
}

void write_element(ElementType type, std::byte* buffer, std::size_t index, ElementBits bits) {
  const auto size = static_cast<std::size_t>(size_of(type));
  std::memcpy(buffer + index * size, &bits, size);
}

ElementBits scalar_reduce(ElementType type, ReduceOperation operation, const std::vector<ElementBits>& inputs) {
  if (inputs.size() == 1) return inputs[0];
  if (type == ElementType::float64) {
    auto sum = std::bit_cast<double>(inputs[0]);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      sum = combine_floats(operation, sum, std::bit_cast<double>(inputs[i]));
    }
    return std::bit_cast<ElementBits>(sum);
  }
  if (is_float(type)) {
    float sum = decode_float(type, inputs[0]);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      sum = combine_floats(operation, sum, decode_float(type, inputs[i]));
    }
    return encode_float(type, sum);
  }
  ElementBits sum = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Wide exact = combine_integers(operation, decode_integer(type, sum), decode_integer(type, inputs[i]));
    sum = keep_bits(type, static_cast<ElementBits>(exact));
  }
  return sum;
}

ElementBits scalar_divide(ElementType type, ElementBits value, std::uint32_t ranks) {
  if (type == ElementType::float64) return std::bit_cast<ElementBits>(std::bit_cast<double>(value) / ranks);
  if (is_float(type)) return encode_float(type, decode_float(type, value) / static_cast<float>(ranks));
  return keep_bits(type, static_cast<ElementBits>(decode_integer(type, value) / static_cast<Wide>(ranks)));
}

bool same_element(ElementType type, ElementBits a, ElementBits b) {
  if (a == b) return true;
  if (type == ElementType::float64) return std::isnan(std::bit_cast<double>(a)) && std::isnan(std::bit_cast<double>(b));
  return is_float(type) && std::isnan(decode_float(type, a)) && std::isnan(decode_float(type, b));
}

ElementBits random_element(ElementType type, Random& random) {
  const auto low = static_cast<ElementBits>(random.between(0, 0xffffffff));
  const auto high = static_cast<ElementBits>(random.between(0, 0xffffffff));
  if (random.between(0, 1) == 0) return keep_bits(type, high << 32 | low);
  const std::int64_t small = random.between(-64, 64);
  if (type == ElementType::float64) return std::bit_cast<ElementBits>(static_cast<double>(small) / 8);
  if (is_float(type)) return encode_float(type, static_cast<float>(small) / 8);
  return keep_bits(type, static_cast<ElementBits>(small));
}

}  // namespace espalier::test
