#include "planners/lp/few_columns.h"

#include <algorithm>
#include <cmath>

#include "planners/lp/restricted_master.h"

namespace espalier::planners {

namespace {

/// Solutions times columns. Where one column after the other is struck out another takes its place as often as not;
/// past this those of its group that are not used are struck out with it.
constexpr std::size_t patience = 200'000;

/// Columns of which more and more are struck out.
class Thinned {
 public:
  Thinned(const MasterProgram& program, const std::vector<Column>& columns)
      : program_(program), columns_(columns), master_(program), struck_out_(columns.size(), false) {
    for (const Column& column : columns) master_.add(column);
  }

  /// Strikes out until no group uses more than so many; false when Clp fails.
  bool thin(std::uint32_t max_per_group) {
    while (is_patient() ? master_.solve() : master_.solve_again()) {
      ++solved_;
      std::vector<double> amounts = master_.amounts();
      std::vector<std::uint32_t> used(program_.family.size(), 0);
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (struck_out_[i]) amounts[i] = 0;
        used[columns_[i].group] += amounts[i] > 0 ? 1U : 0U;
      }
      const auto fullest = std::ranges::max_element(used);
      if (*fullest <= max_per_group) return true;
      strike_least_used(amounts, static_cast<std::uint32_t>(fullest - used.begin()));
      if (is_patient()) continue;
      for (std::uint32_t group = 0; group < used.size(); ++group) {
        if (used[group] == *fullest) strike_unused(amounts, group);
      }
    }
    return false;
  }

  [[nodiscard]] std::optional<ColumnSolution> solution() const {
    const auto exact = master_.exact();
    if (!exact || exact->throughput == 0) return std::nullopt;
    ColumnSolution solution{.limit = exact->throughput, .attained = true};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (exact->amounts[i] > 0) solution.parts.push_back({columns_[i], exact->amounts[i]});
    }
    return solution;
  }

 private:
  [[nodiscard]] bool is_patient() const { return solved_ * columns_.size() < patience; }

  void strike_least_used(const std::vector<double>& amounts, std::uint32_t group) {
    std::size_t least = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (amounts[i] <= 0 || columns_[i].group != group) continue;
      if (least == columns_.size() || amounts[i] < amounts[least]) least = i;
    }
    forbid(least);
  }

  void strike_unused(const std::vector<double>& amounts, std::uint32_t group) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (amounts[i] <= 0 && columns_[i].group == group && !struck_out_[i]) forbid(i);
    }
  }

  void forbid(std::size_t column) {
    master_.forbid(column);
    struck_out_[column] = true;
  }

  const MasterProgram& program_;
  const std::vector<Column>& columns_;
  RestrictedMaster master_;
  std::vector<bool> struck_out_;
  std::size_t solved_ = 0;  // how often
};

}  // namespace

std::vector<ColumnSolution> pack_few_columns(const MasterProgram& program, const std::vector<Column>& columns,
                                             std::span<const std::uint32_t> max_per_group) {
  std::vector<ColumnSolution> solutions;
  Thinned thinned(program, columns);
  for (const std::uint32_t most : max_per_group) {
    auto solution = thinned.thin(most) ? thinned.solution() : std::nullopt;
    if (!solution) break;
    solutions.push_back(*std::move(solution));
  }
  return solutions;
}

std::optional<RoundedPacking> pack_shares(const MasterProgram& program, std::span<const Column> columns,
                                          std::span<const std::int64_t> shares, std::int64_t whole) {
  std::vector<BigInteger> loads(program.capacity.size(), 0);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    for (const Entry entry : columns[i].loads) loads[entry.index] += BigInteger(entry.value) * shares[i];
  }
  std::optional<Rational> reached;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    if (loads[r] == 0) continue;
    const Rational fits(program.capacity[r] * whole, loads[r]);
    if (!reached || fits < *reached) reached = fits;
  }
  if (!reached) return std::nullopt;
  RoundedPacking packing{*reached, {}};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] != 0) packing.parts.push_back({columns[i], make_rational(shares[i], whole) * *reached});
  }
  return packing;
}

std::optional<RoundedPacking> round_packing(const MasterProgram& program, std::span<const Column> columns,
                                            std::vector<double> amounts, double min_share) {
  constexpr std::int64_t steps = std::int64_t{1} << 24U;
  std::vector<double> most(program.family.size(), 0);
  std::vector<double> all(program.family.size(), 0);
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    amounts[i] = std::max(amounts[i], 0.0);
    all[columns[i].group] += amounts[i];
    most[columns[i].group] = std::max(most[columns[i].group], amounts[i]);
  }
  std::vector<double> sums(program.family.size(), 0);
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const std::uint32_t group = columns[i].group;
    if (amounts[i] < std::min(min_share * all[group], most[group])) amounts[i] = 0;
    sums[group] += amounts[i];
  }
  std::vector<std::int64_t> shares(amounts.size(), 0);
  std::vector<std::int64_t> left(sums.size(), steps);
  std::vector<std::size_t> largest(sums.size(), amounts.size());
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const std::uint32_t group = columns[i].group;
    shares[i] = std::llround(amounts[i] / sums[group] * static_cast<double>(steps));
    left[group] -= shares[i];
    if (largest[group] == amounts.size() || shares[i] > shares[largest[group]]) largest[group] = i;
  }
  for (std::size_t group = 0; group < left.size(); ++group) shares[largest[group]] += left[group];
  return pack_shares(program, columns, shares, steps);
}

}  // namespace espalier::planners
