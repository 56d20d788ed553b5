#include "base/rational.h"

namespace espalier {

std::string to_string(const Rational& value) {
  return boost::multiprecision::numerator(value).str() + "/" + boost::multiprecision::denominator(value).str();
}

double to_double(const Rational& value) { return value.convert_to<double>(); }

Rational make_rational(std::int64_t numerator, std::int64_t denominator) {
  return Rational(BigInteger(numerator), BigInteger(denominator));
}

}  // namespace espalier
