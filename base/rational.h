#pragma once

// Tested by: tests/property/sim/max_min_test.cpp

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <string>

namespace espalier {

/// An exact fraction in lowest terms. Times per byte are seconds per byte; all bounds are of this type.
using Rational = boost::multiprecision::cpp_rational;
using BigInteger = boost::multiprecision::cpp_int;

/// "p/q" in lowest terms; a whole number prints as "p/1".
std::string to_string(const Rational& value);

/// The nearest double.
double to_double(const Rational& value);

/// An exact fraction from 64-bit parts. Requires: denominator > 0.
Rational make_rational(std::int64_t numerator, std::int64_t denominator = 1);

}  // namespace espalier
