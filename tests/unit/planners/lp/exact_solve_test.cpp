#include "planners/lp/exact_solve.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier::planners {
namespace {

using Columns = std::vector<std::vector<Entry>>;

Columns random_columns(Random& random, std::size_t n) {
  Columns columns(n);
  for (std::vector<Entry>& column : columns) {
    for (std::uint32_t row = 0; row < n; ++row) {
      if (const std::int64_t value = random.between(-3, 3); value > 0) column.push_back({row, value - 2});
    }
  }
  return columns;
}

TEST(ExactSystem, TwoByTwo) {
  // 2 x + y = 3, x - y = 4: x = 7/3, y = -5/3. Transposed: 2 x + y = 3, x - y = 4 again, the matrix is symmetric.
  const Columns columns = {{{0, 2}, {1, 1}}, {{0, 1}, {1, -1}}};
  const auto system = ExactSystem::factor(columns);
  ASSERT_TRUE(system);
  const std::vector<BigInteger> right = {3, 4};
  const std::vector<Rational> expected = {make_rational(7, 3), make_rational(-5, 3)};
  EXPECT_EQ(system->solve(right), expected);
  EXPECT_EQ(system->solve_transposed(right), expected);
}

TEST(ExactSystem, SingularIsNoticed) {
  EXPECT_FALSE(ExactSystem::factor({{{0, 1}, {1, 2}}, {{0, 2}, {1, 4}}}));
  EXPECT_FALSE(ExactSystem::factor({{{0, 1}}, {}}));
}

TEST(ExactSystem, EmptySystemHasAnEmptyAnswer) {
  const auto system = ExactSystem::factor({});
  ASSERT_TRUE(system);
  EXPECT_TRUE(system->solve({}).empty());
}

TEST(ExactSystem, AnswersSatisfyTheirEquations) {
  Random random(2);
  int solved = 0;
  for (int round = 0; round < 60; ++round) {
    const auto n = static_cast<std::size_t>(random.between(1, 25));
    const Columns columns = random_columns(random, n);
    const auto system = ExactSystem::factor(columns);
    if (!system) continue;
    ++solved;
    std::vector<BigInteger> right;
    for (std::size_t i = 0; i < n; ++i) right.emplace_back(random.between(-1'000'000'000'000, 1'000'000'000'000));
    const std::vector<Rational> x = system->solve(right);
    std::vector<Rational> product(n, 0);
    for (std::size_t c = 0; c < n; ++c) {
      for (const Entry entry : columns[c]) product[entry.index] += x[c] * entry.value;
    }
    const std::vector<Rational> y = system->solve_transposed(right);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(product[i], right[i]);
      Rational sum = 0;
      for (const Entry entry : columns[i]) sum += y[entry.index] * entry.value;
      ASSERT_EQ(sum, right[i]);
    }
  }
  EXPECT_GT(solved, 30);
}

TEST(ReconstructFraction, FindsSmallFractions) {
  // 1/3 modulo 101 is 34, since 3 x 34 = 102.
  EXPECT_EQ(reconstruct_fraction(34, 101), make_rational(1, 3));
  // -2/5 modulo 101: 5 x 81 = 405 = 4 x 101 + 1, so 1/5 is 81 and -2/5 is -162 + 202 = 40.
  EXPECT_EQ(reconstruct_fraction(40, 101), make_rational(-2, 5));
  EXPECT_EQ(reconstruct_fraction(0, 101), Rational(0));
}

}  // namespace
}  // namespace espalier::planners
