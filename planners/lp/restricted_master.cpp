#include "planners/lp/restricted_master.h"

#include <ClpSimplex.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::planners {

namespace {

constexpr double infinite = std::numeric_limits<double>::max();
constexpr double largest_capacity = 1024;  // what Clp sees; its tolerances are absolute

bool is_basic(ClpSimplex::Status status) { return status == ClpSimplex::basic; }

}  // namespace

RestrictedMaster::RestrictedMaster(const MasterProgram& program)
    : program_(program), partner_(program.family.size(), 0), clp_(std::make_unique<ClpSimplex>()) {
  const auto resources = static_cast<std::uint32_t>(program.capacity.size());
  const auto groups = static_cast<std::uint32_t>(program.family.size());
  const bool equal = program.sharing == Sharing::equal;
  std::vector<std::uint32_t> first(program.family_count, groups);
  for (std::uint32_t g = 0; g < groups && !equal; ++g) {
    std::uint32_t& before = first[program.family[g]];
    if (before != groups) {
      partner_[before] = 1;
      partner_[g] = 2;
    } else {
      before = g;
    }
  }
  row_count_ = resources + (equal ? groups : program.family_count);

  BigInteger largest = 1;
  for (const BigInteger& capacity : program.capacity) largest = std::max(largest, capacity);
  scale_ = largest_capacity / largest.convert_to<double>();
  std::vector<double> lower(row_count_, 0);
  std::vector<double> upper(row_count_, 0);
  for (std::uint32_t r = 0; r < resources; ++r) {
    lower[r] = -infinite;
    upper[r] = program.capacity[r].convert_to<double>() * scale_;
  }
  clp_->setLogLevel(0);
  clp_->scaling(0);  // entries are small whole numbers; to scale them anew each time costs more than it gains
  clp_->addRows(static_cast<int>(row_count_), lower.data(), upper.data(), nullptr, nullptr, nullptr);
  if (equal) {
    Variable throughput{{}, 1, 0};
    for (std::uint32_t g = 0; g < groups; ++g) throughput.entries.push_back({resources + g, -1});
    variables_.push_back(std::move(throughput));
  }
}

RestrictedMaster::~RestrictedMaster() = default;

RestrictedMaster::Variable RestrictedMaster::variable_of(const Column& column) const {
  const auto resources = static_cast<std::uint32_t>(program_.capacity.size());
  Variable variable{column.loads, 0, column.excess() * column.excess()};
  const std::uint32_t partner = partner_[column.group];
  if (program_.sharing == Sharing::equal) {
    variable.entries.push_back({resources + column.group, 1});
  } else {
    variable.objective = partner == 2 ? 0 : 1;
    if (partner != 0) variable.entries.push_back({resources + program_.family[column.group], partner == 1 ? 1 : -1});
  }
  return variable;
}

void RestrictedMaster::add(const Column& column) { variables_.push_back(variable_of(column)); }

/// Loads of a traffic matrix are numbers of bytes; Clp gets them as small as those of trees are.
void RestrictedMaster::scale_loads() {
  constexpr std::int64_t most = 1 << 20;
  std::int64_t largest = 0;
  for (const Variable& variable : variables_) {
    for (const Entry entry : variable.entries) largest = std::max(largest, entry.value);
  }
  if (largest > most) load_scale_ = std::ldexp(1.0, -std::ilogb(static_cast<double>(largest)));
}

double RestrictedMaster::clp_value(const Entry& entry) const {
  const double value = static_cast<double>(entry.value);
  return entry.index < program_.capacity.size() ? value * load_scale_ : value;
}

/// All at once, since Clp copies its matrix each time.
void RestrictedMaster::hand_over() {
  if (handed_over_ == 0) scale_loads();
  std::vector<CoinBigIndex> starts = {0};
  std::vector<int> rows;
  std::vector<double> values;
  std::vector<double> costs;
  for (std::size_t c = handed_over_; c < variables_.size(); ++c) {
    for (const Entry entry : variables_[c].entries) {
      rows.push_back(static_cast<int>(entry.index));
      values.push_back(clp_value(entry));
    }
    starts.push_back(static_cast<CoinBigIndex>(rows.size()));
    costs.push_back(clp_cost(variables_[c]));
  }
  if (costs.empty()) return;
  const std::vector<double> lower(costs.size(), 0);
  const std::vector<double> upper(costs.size(), infinite);
  clp_->addColumns(static_cast<int>(costs.size()), lower.data(), upper.data(), costs.data(), starts.data(), rows.data(),
                   values.data());
  entry_count_ += static_cast<std::int64_t>(rows.size());
  handed_over_ = variables_.size();
}

double RestrictedMaster::clp_cost(const Variable& variable) const {
  return excess_price_ * variable.penalty - static_cast<double>(variable.objective);
}

void RestrictedMaster::set_excess_price(double price) {
  excess_price_ = price;
  for (std::size_t c = 0; c < handed_over_; ++c) {
    clp_->setObjectiveCoefficient(static_cast<int>(c), clp_cost(variables_[c]));
  }
}

bool RestrictedMaster::solve() {
  hand_over();
  clp_->primal(1);
  count_pivots();
  return clp_->status() == 0;
}

bool RestrictedMaster::solve_again() {
  clp_->dual(1);
  count_pivots();
  return clp_->status() == 0;
}

void RestrictedMaster::count_pivots() {
  work_ += (1 + std::int64_t{clp_->numberIterations()}) * (entry_count_ + row_count_);
}

double RestrictedMaster::throughput() const { return -clp_->objectiveValue() * load_scale_ / scale_; }

std::vector<double> RestrictedMaster::amounts() const {
  const double* values = clp_->primalColumnSolution();
  std::vector<double> amounts(values + first_column(), values + handed_over_);
  amounts.resize(variables_.size() - first_column(), 0);
  return amounts;
}

void RestrictedMaster::forbid(std::size_t column) {
  clp_->setColumnUpper(static_cast<int>(first_column() + column), 0);
}

std::vector<double> RestrictedMaster::prices() const {
  const double* duals = clp_->dualRowSolution();
  std::vector<double> prices(program_.capacity.size());
  for (std::size_t r = 0; r < prices.size(); ++r) prices[r] = std::max(0.0, -duals[r]);
  return prices;
}

double RestrictedMaster::gain(const Column& column) const {
  const double* duals = clp_->dualRowSolution();
  const Variable variable = variable_of(column);
  double gain = -clp_cost(variable);
  for (const Entry entry : variable.entries) gain += duals[entry.index] * clp_value(entry);
  return gain;
}

std::optional<RestrictedMaster::Exact> RestrictedMaster::exact() const {
  constexpr std::uint32_t loose = UINT32_MAX;
  std::vector<std::uint32_t> tight_row(row_count_, loose);  // its place among the tight rows
  std::vector<BigInteger> right;
  for (std::uint32_t r = 0; r < row_count_; ++r) {
    if (is_basic(clp_->getRowStatus(static_cast<int>(r)))) continue;
    tight_row[r] = static_cast<std::uint32_t>(right.size());
    right.push_back(r < program_.capacity.size() ? program_.capacity[r] : BigInteger(0));
  }
  std::vector<std::uint32_t> basic;
  std::vector<std::vector<Entry>> matrix;
  std::vector<BigInteger> objective;
  for (std::uint32_t c = 0; c < handed_over_; ++c) {
    if (!is_basic(clp_->getColumnStatus(static_cast<int>(c)))) continue;
    basic.push_back(c);
    objective.emplace_back(variables_[c].objective);
    std::vector<Entry>& variable = matrix.emplace_back();
    for (const Entry entry : variables_[c].entries) {
      if (tight_row[entry.index] != loose) variable.push_back({tight_row[entry.index], entry.value});
    }
  }
  if (basic.size() != right.size()) return std::nullopt;
  const auto size = static_cast<std::int64_t>(basic.size());
  work_ += size * size * size;
  const std::optional<ExactSystem> system = ExactSystem::factor(std::move(matrix));
  if (!system) return std::nullopt;

  const std::vector<Rational> values = system->solve(right);
  const std::vector<Rational> duals = system->solve_transposed(objective);
  Exact exact;
  std::vector<Rational> amounts(variables_.size(), 0);
  for (std::size_t i = 0; i < basic.size(); ++i) {
    amounts[basic[i]] = values[i];
    exact.throughput += values[i] * variables_[basic[i]].objective;
  }
  if (!fits(amounts)) return std::nullopt;
  exact.prices.assign(program_.capacity.size(), 0);
  for (std::size_t r = 0; r < exact.prices.size(); ++r) {
    if (tight_row[r] != loose && duals[tight_row[r]] > 0) exact.prices[r] = duals[tight_row[r]];
  }
  exact.amounts.assign(amounts.begin() + static_cast<std::ptrdiff_t>(first_column()), amounts.end());
  return exact;
}

bool RestrictedMaster::fits(const std::vector<Rational>& amounts) const {
  std::vector<Rational> used(row_count_, 0);
  for (std::size_t c = 0; c < amounts.size(); ++c) {
    if (amounts[c] < 0) return false;
    if (amounts[c] == 0) continue;
    for (const Entry entry : variables_[c].entries) used[entry.index] += amounts[c] * entry.value;
  }
  for (std::size_t r = 0; r < row_count_; ++r) {
    const bool is_resource = r < program_.capacity.size();
    if (is_resource ? used[r] > program_.capacity[r] : used[r] != 0) return false;
  }
  return true;
}

}  // namespace espalier::planners
