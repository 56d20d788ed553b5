#pragma once

// Tested by: tests/property/planners/ring_test.cpp

#include <memory>
#include <optional>
#include <vector>

#include "planners/lp/column_generation.h"

class ClpSimplex;

namespace espalier::planners {

/// The restricted master program of `generate_columns`: the columns found so far, solved by Clp in floating point, and
/// its final basis solved in exact fractions.
///
/// Rows are the resources, then one balance per group (equal sharing) or per family of two groups (free sharing);
/// variables are the throughput (equal sharing only), then one per column.
class RestrictedMaster {
 public:
  explicit RestrictedMaster(const MasterProgram& program);
  RestrictedMaster(const RestrictedMaster&) = delete;
  RestrictedMaster& operator=(const RestrictedMaster&) = delete;
  ~RestrictedMaster();

  void add(const Column& column);
  /// From now on the square of a column's excess costs this, per unit, of one unit of throughput. The exact solution
  /// does not count it.
  void set_excess_price(double price);
  /// Optimises from the last basis; false when Clp did not reach an optimum.
  bool solve();
  /// As `solve` after columns were struck out, which leaves the basis dual feasible.
  bool solve_again();

  [[nodiscard]] double throughput() const;
  /// By column, in the order of `add`.
  [[nodiscard]] std::vector<double> amounts() const;
  /// Strikes a column out. Requires: one that was there when last solved.
  void forbid(std::size_t column);
  /// By resource, not negative.
  [[nodiscard]] std::vector<double> prices() const;
  /// How much a column would gain per unit, were it added: positive when it improves the program.
  [[nodiscard]] double gain(const Column& column) const;

  /// What the basis means exactly.
  struct Exact {
    Rational throughput;
    std::vector<Rational> amounts;  ///< By column, in the order of `add`.
    std::vector<Rational> prices;   ///< By resource; negative ones are set to zero.
  };
  /// Nothing when the basis is singular or its exact solution breaks a constraint.
  [[nodiscard]] std::optional<Exact> exact() const;

  /// About how many numbers its solutions have gone over so far: Clp's pivots times what the columns load, and the
  /// eliminations of exact ones. Unlike time, the same on every day.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  struct Variable {
    std::vector<Entry> entries;
    std::int64_t objective;
    double penalty;  ///< The square of the column's excess.
  };
  [[nodiscard]] Variable variable_of(const Column& column) const;
  void hand_over();
  void scale_loads();
  void count_pivots();
  [[nodiscard]] double clp_value(const Entry& entry) const;
  [[nodiscard]] std::size_t first_column() const { return program_.sharing == Sharing::equal ? 1 : 0; }
  [[nodiscard]] double clp_cost(const Variable& variable) const;
  [[nodiscard]] bool fits(const std::vector<Rational>& amounts) const;

  const MasterProgram& program_;
  std::vector<std::uint32_t> partner_;  ///< By group: 0 alone in its family, 1 first of two, 2 second of two.
  std::uint32_t row_count_ = 0;
  double excess_price_ = 0;
  double scale_ = 1;       ///< Clp sees capacities times this.
  double load_scale_ = 1;  ///< And loads times this, a power of two.
  std::vector<Variable> variables_;
  std::size_t handed_over_ = 0;   ///< So many variables does Clp know; the others follow when it solves again.
  std::int64_t entry_count_ = 0;  ///< Of all variables.
  mutable std::int64_t work_ = 0;
  std::unique_ptr<ClpSimplex> clp_;
};

}  // namespace espalier::planners
