#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/rational.h"
#include "planners/lp/exact_solve.h"

namespace espalier::planners {

/// What carries one unit, a tree or a path, by what it takes of each resource.
struct Column {
  std::uint32_t group = 0;
  std::vector<Entry> loads;          ///< By resource.
  std::vector<std::uint32_t> edges;  ///< The edges it uses, path after path; for whoever builds trees from it.
  std::uint32_t height = 1;          ///< Edges from rank to rank on its longest path.
  std::uint32_t min_height = 1;      ///< No column of its group is less high.

  /// How much higher it is than it has to be, in parts of that height.
  [[nodiscard]] double excess() const { return static_cast<double>(height - min_height) / min_height; }
};

/// The cheapest column of every group under given prices, and its cost.
template <class Price>
struct PricedColumns {
  std::vector<Column> columns;
  std::vector<Price> costs;
};

/// What one unit of a column costs.
template <class Price>
Price cost_of(const Column& column, std::span<const Price> prices) {
  Price cost(0);
  for (const Entry entry : column.loads) cost += prices[entry.index] * static_cast<Price>(entry.value);
  return cost;
}

/// Where a program's columns come from.
class PricingOracle {
 public:
  PricingOracle() = default;
  PricingOracle(const PricingOracle&) = delete;
  PricingOracle& operator=(const PricingOracle&) = delete;
  virtual ~PricingOracle() = default;
  /// Requires: prices that are not negative, one per resource.
  [[nodiscard]] virtual PricedColumns<double> cheapest(std::span<const double> prices) const = 0;
  [[nodiscard]] virtual PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const = 0;
  /// Columns that are shallow and not dear, the shallower the larger `weight` is; their costs prove nothing.
  [[nodiscard]] virtual PricedColumns<double> shallow(std::span<const double> prices, double weight) const;
};

/// How groups make up throughput.
enum class Sharing : std::uint8_t {
  free,   ///< Any family may carry any part of it: throughput is the sum over families of what each carries.
  equal,  ///< Every family carries the whole throughput.
};

/// Packs columns into resources: the largest throughput such that no resource is overfull. Groups form families; each
/// group of a family carries the same amount.
struct MasterProgram {
  std::vector<BigInteger> capacity;   ///< By resource.
  std::vector<std::uint32_t> family;  ///< By group; families are numbered from 0, one or two groups each.
  std::uint32_t family_count = 0;
  Sharing sharing = Sharing::free;
};

/// What one unit of throughput costs at least, from the cheapest column of each group.
template <class Price>
Price min_unit_cost(const MasterProgram& program, const std::vector<Price>& costs) {
  if (program.sharing == Sharing::equal) return std::accumulate(costs.begin(), costs.end(), Price(0));
  std::vector<Price> family(program.family_count, Price(0));
  for (std::size_t g = 0; g < costs.size(); ++g) family[program.family[g]] += costs[g];
  return *std::min_element(family.begin(), family.end());
}

/// How far column generation is.
struct ColumnRound {
  std::uint32_t round = 0;  ///< From 1 on.
  std::size_t columns = 0;  ///< Columns met so far.
  double throughput = 0;    ///< What these reach.
  double limit = 0;         ///< What the prices met so far allow any columns to reach.
};

struct ColumnLimits {
  std::uint32_t rounds = 400;      ///< Times the master program is solved.
  std::uint32_t warm_rounds = 40;  ///< Rounds of multiplicative prices that find the first columns.
  bool shallow = false;            ///< Of equally good solutions, prefer one of shallow columns.
  bool cheapest_first = false;     ///< Shallow columns come when the cheapest bring no more: sooner at the optimum.
  std::optional<Rational> wanted;  ///< A solution of less throughput is not made shallow.
  std::uint32_t max_height = 0;    ///< No higher columns, where not 0: the solution is then good, not proven best.
  /// Stops with the best limit so far once the master program has cost so much (RestrictedMaster::work).
  std::int64_t max_work = std::numeric_limits<std::int64_t>::max();
  double gap = 0;                 ///< Stops with a solution that may miss twice this part of the limit, where not 0.
  std::span<const Column> seeds;  ///< Columns to begin with. Requires: all groups in it, or some warm rounds.
  std::function<void(const ColumnRound&)> on_round;  ///< Told when a round begins; changes nothing but the time.
};

/// A solution in exact fractions.
struct ColumnSolution {
  struct Part {
    Column column;
    Rational amount;
  };

  Rational limit;  ///< No packing has more throughput: proven by `prices`; positive where every column takes of what
                   ///< has room, but for a search below a height that found nothing.
  std::vector<BigInteger> prices;  ///< limit = capacity . prices / (what one unit of throughput costs at least).
  bool attained = false;           ///< Whether `parts` reach the limit, exactly.
  std::vector<Part> parts;         ///< Columns with positive amounts; empty unless attained, or stopped at a gap.
  Rational reached;                ///< What `parts` carry: the limit, or less where stopped at a gap.
  std::vector<Column> found;       ///< All columns that were met.
  std::int64_t work = 0;           ///< What the master program has cost (RestrictedMaster::work).
};

/// Solves a program by column generation: Clp proposes, exact arithmetic decides. Deterministic; stops at the limits
/// with the best limit found so far. Requires: every group has a column; every capacity is positive, or, with seeds,
/// not negative and some throughput possible. Source: L. R.
/// Ford and D. R. Fulkerson, "A suggested computation for maximal multi-commodity network flows", Management Science 5
/// (1958); stabilised as in A. Pessoa et al., "Automation and combination of linear-programming based stabilization
/// techniques in column generation", INFORMS J. Computing 30 (2018).
ColumnSolution generate_columns(const MasterProgram& program, const PricingOracle& oracle, const ColumnLimits& limits);

}  // namespace espalier::planners
