#include "planners/lp/few_columns.h"

#include <algorithm>
#include <cmath>

#include "planners/lp/restricted_master.h"

namespace espalier::planners {

std::optional<ColumnSolution> pack_few_columns(const MasterProgram& program, const std::vector<Column>& columns,
                                               std::uint32_t most_per_group) {
  RestrictedMaster master(program);
  for (const Column& column : columns) master.add(column);
  std::vector<bool> struck_out(columns.size(), false);
  while (true) {
    if (!master.solve()) return std::nullopt;
    std::vector<double> amounts = master.amounts();
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      if (struck_out[i]) amounts[i] = 0;
    }
    std::vector<std::uint32_t> used(program.family.size(), 0);
    for (std::size_t i = 0; i < columns.size(); ++i) used[columns[i].group] += amounts[i] > 0 ? 1U : 0U;
    const auto fullest = std::max_element(used.begin(), used.end());
    if (*fullest <= most_per_group) break;
    std::size_t least = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (amounts[i] <= 0 || columns[i].group != static_cast<std::uint32_t>(fullest - used.begin())) continue;
      if (least == columns.size() || amounts[i] < amounts[least]) least = i;
    }
    master.forbid(least);
    struck_out[least] = true;
  }
  const auto exact = master.exact();
  if (!exact || exact->throughput == 0) return std::nullopt;
  ColumnSolution solution;
  solution.limit = exact->throughput;
  solution.attained = true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (exact->amounts[i] > 0) solution.parts.push_back({columns[i], exact->amounts[i]});
  }
  return solution;
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
                                            std::vector<double> amounts, double least_share) {
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
    if (amounts[i] < std::min(least_share * all[group], most[group])) amounts[i] = 0;
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
