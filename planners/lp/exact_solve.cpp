#include "planners/lp/exact_solve.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
using Wide = __int128;

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  const std::uint64_t sum = static_cast<std::uint64_t>(product & prime) + static_cast<std::uint64_t>(product >> 61);
  return sum >= prime ? sum - prime : sum;
}

std::uint64_t subtract(std::uint64_t a, std::uint64_t b) { return a >= b ? a - b : a + prime - b; }

std::uint64_t inverse(std::uint64_t value) {
  std::uint64_t result = 1;
  for (std::uint64_t exponent = prime - 2; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = multiply(result, value);
    value = multiply(value, value);
  }
  return result;
}

std::uint64_t residue(Wide value) {
  const Wide rest = value % static_cast<Wide>(prime);
  return static_cast<std::uint64_t>(rest < 0 ? rest + static_cast<Wide>(prime) : rest);
}

}  // namespace

std::optional<Rational> reconstruct_fraction(const BigInteger& residue, const BigInteger& modulus) {
  const BigInteger limit = boost::multiprecision::sqrt(BigInteger(modulus / 2));
  BigInteger previous = modulus;
  BigInteger current = residue;
  BigInteger previous_factor = 0;
  BigInteger factor = 1;
  while (current > limit) {
    const BigInteger quotient = previous / current;
    previous = std::exchange(current, BigInteger(previous - quotient * current));
    previous_factor = std::exchange(factor, BigInteger(previous_factor - quotient * factor));
  }
  if (factor == 0 || abs(factor) > limit) return std::nullopt;
  return factor < 0 ? Rational(BigInteger(-current), BigInteger(-factor)) : Rational(current, factor);
}

std::optional<ExactSystem> ExactSystem::factor(std::vector<std::vector<Entry>> columns) {
  ExactSystem system;
  const std::size_t n = columns.size();
  system.size_ = n;
  system.rows_.resize(n);
  system.factors_.assign(n * n, 0);
  for (std::uint32_t column = 0; column < n; ++column) {
    for (const Entry entry : columns[column]) {
      system.rows_[entry.index].push_back({column, entry.value});
      system.factors_[entry.index * n + column] = residue(entry.value);
    }
  }
  system.columns_ = std::move(columns);
  system.pivot_row_.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) system.pivot_row_[i] = i;

  std::vector<std::uint64_t>& lu = system.factors_;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    while (pivot < n && lu[pivot * n + k] == 0) ++pivot;
    if (pivot == n) return std::nullopt;
    if (pivot != k) {
      std::swap_ranges(lu.begin() + static_cast<std::ptrdiff_t>(k * n),
                       lu.begin() + static_cast<std::ptrdiff_t>((k + 1) * n),
                       lu.begin() + static_cast<std::ptrdiff_t>(pivot * n));
      std::swap(system.pivot_row_[k], system.pivot_row_[pivot]);
    }
    const std::uint64_t pivot_inverse = inverse(lu[k * n + k]);
    for (std::size_t i = k + 1; i < n; ++i) {
      if (lu[i * n + k] == 0) continue;
      const std::uint64_t multiple = multiply(lu[i * n + k], pivot_inverse);
      lu[i * n + k] = multiple;
      for (std::size_t j = k + 1; j < n; ++j) {
        if (lu[k * n + j] != 0) lu[i * n + j] = subtract(lu[i * n + j], multiply(multiple, lu[k * n + j]));
      }
    }
    lu[k * n + k] = pivot_inverse;  // only ever divided by
  }
  return system;
}

std::vector<std::uint64_t> ExactSystem::solve_modular(std::vector<std::uint64_t> right, bool transposed) const {
  const std::size_t n = size_;
  std::vector<std::uint64_t> answer(n);
  if (!transposed) {
    for (std::size_t i = 0; i < n; ++i) {
      answer[i] = right[pivot_row_[i]];
      for (std::size_t j = 0; j < i; ++j) answer[i] = subtract(answer[i], multiply(factors_[i * n + j], answer[j]));
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) answer[i] = subtract(answer[i], multiply(factors_[i * n + j], answer[j]));
      answer[i] = multiply(answer[i], factors_[i * n + i]);
    }
    return answer;
  }
  for (std::size_t j = 0; j < n; ++j) {
    right[j] = multiply(right[j], factors_[j * n + j]);
    for (std::size_t i = j + 1; i < n; ++i) right[i] = subtract(right[i], multiply(factors_[j * n + i], right[j]));
  }
  for (std::size_t j = n; j-- > 0;) {
    for (std::size_t i = 0; i < j; ++i) right[i] = subtract(right[i], multiply(factors_[j * n + i], right[j]));
    answer[pivot_row_[j]] = right[j];
  }
  return answer;
}

bool ExactSystem::holds(std::span<const Rational> answer, std::span<const BigInteger> right, bool transposed) const {
  BigInteger common = 1;
  for (const Rational& value : answer) common = lcm(common, BigInteger(denominator(value)));
  std::vector<BigInteger> scaled;
  for (const Rational& value : answer) scaled.push_back(numerator(value) * (common / denominator(value)));
  for (std::size_t i = 0; i < size_; ++i) {
    BigInteger sum = 0;
    for (const Entry entry : transposed ? columns_[i] : rows_[i]) sum += scaled[entry.index] * entry.value;
    if (sum != right[i] * common) return false;
  }
  return true;
}

std::vector<Rational> ExactSystem::lift(std::span<const BigInteger> right, bool transposed) const {
  ESPALIER_CHECK(right.size() == size_, "the right side of an exact system has the wrong length");
  std::vector<Wide> rest;
  for (const BigInteger& value : right) rest.push_back(value.convert_to<Wide>());
  std::vector<BigInteger> residues(size_, 0);
  BigInteger modulus = 1;
  std::vector<Rational> answer(size_);
  for (std::size_t digits = 0, next_try = 2;; ++digits) {
    if (digits == next_try) {
      next_try += next_try / 2 + 1;
      bool complete = true;
      for (std::size_t i = 0; i < size_ && complete; ++i) {
        const std::optional<Rational> value = reconstruct_fraction(residues[i], modulus);
        complete = value.has_value();
        if (complete) answer[i] = *value;
      }
      if (complete && holds(answer, right, transposed)) return answer;
    }
    std::vector<std::uint64_t> digit(size_);
    for (std::size_t i = 0; i < size_; ++i) digit[i] = residue(rest[i]);
    digit = solve_modular(std::move(digit), transposed);
    for (std::size_t i = 0; i < size_; ++i) {
      for (const Entry entry : transposed ? columns_[i] : rows_[i]) {
        rest[i] -= static_cast<Wide>(digit[entry.index]) * entry.value;
      }
      rest[i] /= static_cast<Wide>(prime);
      residues[i] += modulus * digit[i];
    }
    modulus *= prime;
  }
}

std::vector<Rational> ExactSystem::solve(std::span<const BigInteger> right) const { return lift(right, false); }

std::vector<Rational> ExactSystem::solve_transposed(std::span<const BigInteger> right) const {
  return lift(right, true);
}

}  // namespace espalier::planners
