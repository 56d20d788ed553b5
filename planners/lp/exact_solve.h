#pragma once

// Tested by: tests/unit/planners/lp/exact_solve_test.cpp

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rational.h"

namespace espalier::planners {

/// One entry of a sparse integer matrix or vector.
struct Entry {
  std::uint32_t index = 0;
  std::int64_t value = 0;

  friend auto operator<=>(const Entry&, const Entry&) = default;
};

/// A square sparse integer matrix whose systems are solved in exact fractions.
///
/// Thread-safety: safe to share once made. Invariants: (1) the matrix is invertible modulo 2^61 - 1, hence over the
/// fractions.
class ExactSystem {
 public:
  /// Factors a matrix given by its columns; nothing when it is singular (or, practically never, when 2^61 - 1 divides
  /// its determinant). Requires: entries below 2^40 in size, row indices below the number of columns.
  /// Cost: n^3 / 3 modular products.
  static std::optional<ExactSystem> factor(std::vector<std::vector<Entry>> columns);

  /// x with M x = right. Cost: n^2 per 61 bits of the answer.
  /// Source: J. D. Dixon, "Exact solution of linear equations using p-adic expansions", Numer. Math. 40 (1982).
  [[nodiscard]] std::vector<Rational> solve(std::span<const BigInteger> right) const;
  /// y with y M = right.
  [[nodiscard]] std::vector<Rational> solve_transposed(std::span<const BigInteger> right) const;

 private:
  ExactSystem() = default;
  [[nodiscard]] std::vector<std::uint64_t> solve_modular(std::vector<std::uint64_t> right, bool transposed) const;
  [[nodiscard]] std::vector<Rational> lift(std::span<const BigInteger> right, bool transposed) const;
  [[nodiscard]] bool holds(std::span<const Rational> answer, std::span<const BigInteger> right, bool transposed) const;

  std::size_t size_ = 0;
  std::vector<std::vector<Entry>> columns_, rows_;
  std::vector<std::uint64_t> factors_;  ///< L (unit diagonal) and U of the row-permuted matrix, row by row.
  std::vector<std::uint32_t> pivot_row_;
};

/// The fraction n/d with |n| and d at most sqrt(modulus / 2) that is `residue` modulo `modulus`; nothing when there is
/// none. Source: P. S. Wang, "A p-adic algorithm for univariate partial fractions", SYMSAC 1981.
std::optional<Rational> reconstruct_fraction(const BigInteger& residue, const BigInteger& modulus);

}  // namespace espalier::planners
