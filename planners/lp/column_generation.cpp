#include "planners/lp/column_generation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "planners/lp/few_columns.h"
#include "planners/lp/restricted_master.h"

namespace espalier::planners {

namespace {

class Generation {
 public:
  Generation(const MasterProgram& program, const PricingOracle& oracle, const ColumnLimits& limits)
      : program_(program), oracle_(oracle), limits_(limits), master_(program) {
    for (const BigInteger& capacity : program.capacity) capacity_.push_back(capacity.convert_to<double>());
  }

  ColumnSolution run() {
    ESPALIER_CHECK(limits_.warm_rounds > 0 || !limits_.seeds.empty(), "column generation needs columns to begin with");
    for (const Column& seed : limits_.seeds) add(seed);
    warm_up();
    if (limits_.max_height != 0) return run_below_height();
    for (std::uint32_t round = 0; round < limits_.rounds && has_work_left(); ++round) {
      if (!master_.solve()) break;
      const Prices prices = master_prices();
      tell(round + 1, prices);
      if (is_near()) break;
      // Shallow columns prove no limit, and each round may bring one: the cheapest get half of the rounds at least.
      const bool shallow_first = !limits_.cheapest_first && round < limits_.rounds / 2;
      if (shallow_first && improve_shallow(prices)) continue;
      if (improve(blend(prices, center_, 0.7)) || improve(prices)) continue;
      if (!shallow_first && improve_shallow(prices)) continue;
      if (!settle()) break;
      if (!solution_.attained) continue;
      if (limits_.shallow && (!limits_.wanted || solution_.limit >= *limits_.wanted)) flatten();
      return finished();
    }
    prove_center();
    if (is_near()) take_rounded();
    return finished();
  }

 private:
  using Prices = std::vector<double>;

  [[nodiscard]] bool has_work_left() const { return master_.work() <= limits_.max_work; }

  /// Whether the program reaches all but the allowed part of what any prices met allow.
  [[nodiscard]] bool is_near() const {
    return limits_.gap > 0 && center_limit_ < infinite_limit &&
           master_.throughput() >= center_limit_ * (1 - limits_.gap);
  }

  /// The amounts of the last solution, exact again, if a little less. As many columns as another gap's width allows
  /// are left out, the least used of every group first: each is paths that data is cut up for.
  void take_rounded() {
    for (const double min_share : {0.25, 0.12, 0.06, 0.03, 0.01, 0.0}) {
      auto rounded = round_packing(program_, columns_, master_.amounts(), min_share);
      if (!rounded) continue;
      solution_.reached = std::move(rounded->reached);
      solution_.parts = std::move(rounded->parts);
      if (solution_.reached.convert_to<double>() >= center_limit_ * (1 - 2 * limits_.gap)) return;
    }
  }

  /// The master program's, and for what has no room one that nobody pays.
  [[nodiscard]] Prices master_prices() const {
    Prices prices = master_.prices();
    const double unpaid = no_room_price * std::accumulate(prices.begin(), prices.end(), 0.0);
    for (std::size_t r = 0; r < prices.size(); ++r) {
      if (capacity_[r] == 0) prices[r] += unpaid;
    }
    return prices;
  }

  /// Prices of its own and not those of the search, so that who listens does not change what is found.
  void tell(std::uint32_t round, const Prices& prices) {
    if (!limits_.on_round) return;
    const auto consider = [&](Prices candidate) {
      const double limit = limit_of(candidate, oracle_.cheapest(candidate).costs);
      if (limit >= told_limit_) return;
      told_limit_ = limit;
      told_prices_ = std::move(candidate);
    };
    if (told_prices_.empty()) {
      consider(even_prices());
    }
    // The master program's prices alone prove nothing where some tree costs nothing at them.
    consider(blend(prices, told_prices_, 0.5));
    consider(normalised(prices));
    const bool proves = told_limit_ < infinite_limit;
    limits_.on_round(
        {round, columns_.size(), master_.throughput(), proves ? told_limit_ : std::numeric_limits<double>::infinity()});
  }

  [[nodiscard]] bool prefers_low() const { return limits_.shallow || limits_.max_height != 0; }

  ColumnSolution finished() {
    if (solution_.attained) solution_.reached = solution_.limit;
    solution_.work = master_.work();
    solution_.found = std::move(columns_);
    return std::move(solution_);
  }

  ColumnSolution run_below_height() {
    for (std::uint32_t round = 0; round < limits_.rounds && has_work_left(); ++round) {
      if (!master_.solve()) return finished();
      const Prices prices = master_prices();
      tell(round + 1, prices);
      if (!improve_shallow(prices)) break;
    }
    if (const auto exact = master_.exact(); exact && exact->throughput > 0) {
      solution_.limit = exact->throughput;
      solution_.attained = true;
      take_parts(*exact);
    }
    return finished();
  }

  [[nodiscard]] double limit_of(const Prices& prices, const std::vector<double>& costs) const {
    const double cost = min_unit_cost(program_, costs);
    return cost > 0 ? std::inner_product(prices.begin(), prices.end(), capacity_.begin(), 0.0) / cost : infinite_limit;
  }

  /// Prices that make the whole network cost 1, or, where all that costs has no room, that add up to 1.
  [[nodiscard]] Prices normalised(Prices prices) const {
    double total = std::inner_product(prices.begin(), prices.end(), capacity_.begin(), 0.0);
    if (total <= 0) total = std::accumulate(prices.begin(), prices.end(), 0.0);
    for (double& price : prices) price /= total;
    return prices;
  }

  [[nodiscard]] Prices blend(const Prices& prices, const Prices& center, double weight) const {
    Prices mixed = normalised(prices);
    if (center.empty()) return mixed;
    for (std::size_t r = 0; r < mixed.size(); ++r) mixed[r] = (1 - weight) * mixed[r] + weight * center[r];
    return mixed;
  }

  bool add(Column column) {
    if (limits_.max_height != 0 && column.height > limits_.max_height) return false;
    if (!known_.emplace(column.group, column.loads).second) return false;
    master_.add(column);
    columns_.push_back(std::move(column));
    return true;
  }

  void consider_center(const Prices& prices, double limit) {
    if (limit >= center_limit_) return;
    center_limit_ = limit;
    center_ = normalised(prices);
  }

  /// Multiplicative prices: what is fullest becomes dear. Finds columns that spread over the network.
  void warm_up() {
    std::vector<double> filled(capacity_.size(), 0);
    if (limits_.max_height != 0) {
      const Prices even(capacity_.size(), 1.0);
      for (Column& column : oracle_.shallow(even, lowest_weight).columns) add(std::move(column));
    }
    for (std::uint32_t round = 0; round < limits_.warm_rounds; ++round) {
      const double fullest = *std::max_element(filled.begin(), filled.end());
      Prices prices(capacity_.size());
      for (std::size_t r = 0; r < prices.size(); ++r) {
        const double fullness = fullest > 0 ? filled[r] / fullest : 1;
        prices[r] = std::exp(sharpness * (fullness - 1)) / capacity_[r];
      }
      PricedColumns<double> priced =
          prefers_low() ? oracle_.shallow(prices, shallow_weights.front()) : oracle_.cheapest(prices);
      if (!prefers_low()) consider_center(prices, limit_of(prices, priced.costs));
      const std::uint32_t chosen = cheapest_family(priced);
      for (Column& column : priced.columns) {
        if (program_.sharing == Sharing::equal || program_.family[column.group] == chosen) {
          for (const Entry entry : column.loads) {
            filled[entry.index] += static_cast<double>(entry.value) / capacity_[entry.index];
          }
        }
        add(std::move(column));
      }
    }
  }

  /// The family whose groups' cheapest columns cost least together.
  [[nodiscard]] std::uint32_t cheapest_family(const PricedColumns<double>& priced) const {
    std::vector<double> group(program_.family.size(), infinite_limit);
    for (std::size_t i = 0; i < priced.columns.size(); ++i) {
      double& least = group[priced.columns[i].group];
      least = std::min(least, priced.costs[i]);
    }
    std::vector<double> family(program_.family_count, 0);
    for (std::size_t g = 0; g < group.size(); ++g) family[program_.family[g]] += group[g];
    return static_cast<std::uint32_t>(std::min_element(family.begin(), family.end()) - family.begin());
  }

  /// Adds what the prices find and the master program gains from; false when there is nothing.
  bool improve(const Prices& prices) {
    PricedColumns<double> priced = oracle_.cheapest(prices);
    consider_center(prices, limit_of(prices, priced.costs));
    return add_gainful(std::move(priced));
  }

  /// The same with shallow columns, where they are asked for.
  bool improve_shallow(const Prices& prices) {
    if (!prefers_low()) return false;
    return std::any_of(shallow_weights.begin(), shallow_weights.end(),
                       [&](double weight) { return add_gainful(oracle_.shallow(prices, weight)); });
  }

  bool add_gainful(PricedColumns<double> priced) {
    bool improved = false;
    for (Column& column : priced.columns) {
      if (master_.gain(column) > gain_tolerance && add(std::move(column))) improved = true;
    }
    return improved;
  }

  /// Solves the final basis exactly and proves it, or finds what it lacks; false when neither works.
  bool settle() {
    const std::optional<RestrictedMaster::Exact> exact = master_.exact();
    if (!exact) return false;
    PricedColumns<BigInteger> priced = prove(exact->prices);
    if (solution_.limit == exact->throughput) {
      solution_.attained = true;
      take_parts(*exact);
      return true;
    }
    bool improved = false;
    for (Column& column : priced.columns) improved = add(std::move(column)) || improved;
    return improved;
  }

  void take_parts(const RestrictedMaster::Exact& exact) {
    solution_.parts.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (exact.amounts[i] > 0) solution_.parts.push_back({columns_[i], exact.amounts[i]});
    }
  }

  /// Looks for a solution as good as the one that is proven with columns less deep, by giving depth a price so small
  /// that it buys no throughput.
  void flatten() {
    if (std::all_of(solution_.parts.begin(), solution_.parts.end(),
                    [](auto& part) { return part.column.excess() == 0; })) {
      return;
    }
    for (const double price : excess_prices) {
      master_.set_excess_price(price);
      for (std::uint32_t round = 0; round < flatten_rounds; ++round) {
        if (!has_work_left() || !master_.solve()) return;
        if (!improve_shallow(master_prices())) break;
      }
      if (!master_.solve()) return;
      const std::optional<RestrictedMaster::Exact> exact = master_.exact();
      if (!exact || exact->throughput != solution_.limit) continue;
      take_parts(*exact);
      return;
    }
  }

  /// Evaluates prices exactly and keeps the limit that they prove if it is the lowest so far.
  PricedColumns<BigInteger> prove(const std::vector<Rational>& prices) {
    BigInteger common = 1;
    for (const Rational& price : prices) common = lcm(common, BigInteger(denominator(price)));
    std::vector<BigInteger> whole;
    BigInteger total = 0;
    BigInteger sum = 1;
    for (std::size_t r = 0; r < prices.size(); ++r) {
      whole.push_back(numerator(prices[r]) * (common / denominator(prices[r])));
      total += whole.back() * program_.capacity[r];
      sum += whole.back();
    }
    // What has no room costs the capacity nothing, and so may have any price: one that nobody pays.
    for (std::size_t r = 0; r < prices.size(); ++r) {
      if (program_.capacity[r] == 0) whole[r] += sum * no_room_price;
    }
    PricedColumns<BigInteger> priced = oracle_.cheapest(whole);
    const BigInteger cost = min_unit_cost(program_, priced.costs);
    if (cost > 0) {
      const Rational limit(total, cost);
      if (solution_.prices.empty() || limit < solution_.limit) {
        solution_.limit = limit;
        solution_.prices = std::move(whole);
      }
    }
    return priced;
  }

  /// Where all resources with room are worth the same.
  [[nodiscard]] Prices even_prices() const {
    Prices even(capacity_.size());
    for (std::size_t r = 0; r < even.size(); ++r) even[r] = capacity_[r] > 0 ? 1 / capacity_[r] : 1;
    return normalised(even);
  }

  /// The best prices met, or even ones, rounded to whole positive numbers: a valid limit, if not the optimum.
  void prove_center() {
    if (center_.empty()) center_ = even_prices();
    const double largest = *std::max_element(center_.begin(), center_.end());
    std::vector<Rational> prices;
    for (const double price : center_) {
      prices.emplace_back(std::max<std::int64_t>(1, std::llround(price / largest * rounding_steps)));
    }
    prove(prices);
  }

  static constexpr double infinite_limit = std::numeric_limits<double>::max();
  static constexpr double sharpness = 12;
  static constexpr double gain_tolerance = 1e-9;
  static constexpr std::array shallow_weights = {1.0, 0.3, 0.1, 0.03, 0.001};
  static constexpr double lowest_weight = 1000;
  static constexpr std::array excess_prices = {1e-2, 1e-3, 1e-4};
  static constexpr std::uint32_t flatten_rounds = 6;
  static constexpr double rounding_steps = 1e9;
  static constexpr int no_room_price = 1000;  ///< Times all prices together.

  const MasterProgram& program_;
  const PricingOracle& oracle_;
  const ColumnLimits& limits_;
  RestrictedMaster master_;
  std::vector<double> capacity_;
  std::vector<Column> columns_;
  std::set<std::pair<std::uint32_t, std::vector<Entry>>> known_;
  Prices center_;
  double center_limit_ = infinite_limit;
  double told_limit_ = infinite_limit;
  Prices told_prices_;  ///< That prove it.
  ColumnSolution solution_;
};

}  // namespace

ColumnSolution generate_columns(const MasterProgram& program, const PricingOracle& oracle, const ColumnLimits& limits) {
  return Generation(program, oracle, limits).run();
}

PricedColumns<double> PricingOracle::shallow(std::span<const double> prices, double /*weight*/) const {
  return cheapest(prices);
}

}  // namespace espalier::planners
