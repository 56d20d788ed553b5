#include "planners/packing/improve/few_trees.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "planners/packing/improve/tree_balance.h"

namespace espalier::planners {

namespace {

constexpr std::uint32_t round_limit = 16;
/// Once completions have looked at so many columns, a round that gains little is the last one.
constexpr std::size_t many_columns = 600;
/// Such a round makes less than one tree of so many go.
constexpr std::uint32_t min_gain = 8;
/// So few trees are not worth much search in a large program.
constexpr std::uint32_t not_many = 8;
constexpr std::size_t large_program = 1024;  // groups x resources

/// A best packing of what is left: its exact capacities are `room`.
struct Rest {
  std::vector<Rational> room;
  Rational throughput;
  ColumnSolution solution;  ///< Of the program with all rooms times `scale`.
  BigInteger scale = 1;

  [[nodiscard]] bool is_complete() const { return solution.attained && solution.limit == throughput * scale; }
};

/// How much of each resource one unit of throughput takes, over whole trees of all groups.
std::vector<std::int64_t> joint_loads(const std::vector<Column>& columns, std::size_t resources) {
  std::vector<std::int64_t> loads(resources, 0);
  for (const Column& column : columns) {
    for (const Entry entry : column.loads) loads[entry.index] += entry.value;
  }
  return loads;
}

/// What trees with these loads and this amount leave.
Rest left_of(const Rest& rest, const std::vector<std::int64_t>& loads, const Rational& amount) {
  Rest left{rest.room, rest.throughput - amount, {}, 1};
  for (std::size_t r = 0; r < loads.size(); ++r) left.room[r] -= amount * loads[r];
  return left;
}

class Thinning {
 public:
  Thinning(const OrbitGraph& orbits, const TreeOracle& oracle, const ColumnSolution& solution, const FewTrees& wanted)
      : orbits_(orbits),
        oracle_(oracle),
        wanted_(wanted),
        program_(oracle.program()),
        whole_(solution),
        cheapest_(oracle.cheapest(solution.prices)),
        known_(cheapest_.columns) {
    for (const ColumnSolution::Part& part : solution.parts) known_.push_back(part.column);
    keep_cheapest(solution.found);
  }

  ColumnSolution run() {
    ColumnSolution best = whole_;
    std::uint32_t fewest = count_trees(whole_);
    Rest rest{{}, whole_.limit, whole_, 1};
    for (const BigInteger& capacity : program_.capacity) rest.room.emplace_back(capacity);
    bool is_fine = has_fine_parts(whole_.parts);
    std::vector<ColumnSolution::Part> taken;
    const std::uint32_t max_rounds = std::min(std::max(wanted_.enough, fewest / 2) + 1, round_limit);
    for (std::uint32_t round = 1; round < fewest && fewest > wanted_.enough && round <= max_rounds; ++round) {
      if (is_spent()) break;
      std::optional<Rest> next;
      for (const bool is_balanced : {true, false}) {
        const std::vector<Column> chosen = choose(rest, is_balanced);
        if (chosen.empty()) return with_work(std::move(best));
        Rational amount = 0;
        next = take(rest, chosen, amount);
        if (!next) continue;
        for (const Column& column : chosen) taken.push_back({column, amount});
        break;
      }
      if (!next) break;
      rest = *std::move(next);
      const std::uint32_t count = round * trees_per_round() + (rest.throughput == 0 ? 0 : count_trees(rest.solution));
      const bool is_last = !is_fine && ((columns_seen_ > many_columns && count + fewest / min_gain >= fewest) ||
                                        (is_large() && fewest <= not_many && count >= fewest));
      if (count < fewest || is_fine) {
        std::vector<ColumnSolution::Part> parts = taken;
        for (const ColumnSolution::Part& part : rest.solution.parts) {
          if (rest.throughput != 0) parts.push_back({part.column, part.amount / rest.scale});
        }
        if (!has_fine_parts(parts)) {
          fewest = count;
          best.parts = std::move(parts);
          is_fine = false;
        }
      }
      if (rest.throughput == 0 || is_last) break;
    }
    return with_work(std::move(best));
  }

 private:
  [[nodiscard]] bool is_spent() const { return work_ > wanted_.max_work; }

  [[nodiscard]] ColumnSolution with_work(ColumnSolution solution) const {
    solution.work += work_;
    return solution;
  }

  [[nodiscard]] bool is_large() const { return program_.family.size() * program_.capacity.size() >= large_program; }

  /// Whether parts of the throughput have so fine a common divisor that trees could not have whole weights.
  [[nodiscard]] bool has_fine_parts(const std::vector<ColumnSolution::Part>& parts) const {
    constexpr unsigned max_bits = 40;
    BigInteger common = 1;
    for (const ColumnSolution::Part& part : parts) {
      common = lcm(common, BigInteger(denominator(Rational(part.amount / whole_.limit))));
      if ((common >> max_bits) != 0) return true;
    }
    return false;
  }

  /// Trees, one per group: the largest of each in the packing of the rest, balanced if so wished.
  [[nodiscard]] std::vector<Column> choose(const Rest& rest, bool is_balanced) const {
    std::vector<const ColumnSolution::Part*> largest(program_.family.size(), nullptr);
    for (const ColumnSolution::Part& part : rest.solution.parts) {
      const ColumnSolution::Part*& entry = largest[part.column.group];
      if (entry == nullptr || part.amount > entry->amount) entry = &part;
    }
    std::vector<Column> columns;
    const std::uint32_t family = fullest_family(rest.solution);
    for (std::uint32_t group = 0; group < largest.size(); ++group) {
      if (program_.sharing == Sharing::free && program_.family[group] != family) continue;
      if (largest[group] == nullptr) return {};
      columns.push_back(largest[group]->column);
    }
    if (!is_balanced) return columns;
    std::vector<double> room;
    for (const Rational& value : rest.room) room.push_back(to_double(value / rest.throughput));
    // Trees that are cheapest at the prices of the whole and at those of the rest are so at the sum of both.
    const BigInteger whole_sum = std::accumulate(whole_.prices.begin(), whole_.prices.end(), BigInteger(0));
    const std::vector<BigInteger>& rest_prices = rest.solution.prices;
    const BigInteger rest_sum = std::accumulate(rest_prices.begin(), rest_prices.end(), BigInteger(0));
    std::vector<BigInteger> prices;
    for (std::size_t r = 0; r < room.size(); ++r) {
      prices.push_back(whole_.prices[r] * rest_sum + rest_prices[r] * whole_sum);
    }
    return balanced_trees(orbits_, oracle_, prices, std::move(columns), room, wanted_.max_height);
  }

  /// The family that carries most.
  [[nodiscard]] std::uint32_t fullest_family(const ColumnSolution& solution) const {
    std::vector<Rational> carried(program_.family_count, 0);
    for (const ColumnSolution::Part& part : solution.parts) {
      carried[program_.family[part.column.group]] += part.amount;
    }
    return static_cast<std::uint32_t>(std::max_element(carried.begin(), carried.end()) - carried.begin());
  }

  [[nodiscard]] std::uint32_t trees_per_round() const {
    if (program_.sharing == Sharing::equal) return 1;
    return static_cast<std::uint32_t>(program_.family.size()) / program_.family_count;
  }

  /// How many trees a solution has: of the root that has most where roots share alike, else in all.
  [[nodiscard]] std::uint32_t count_trees(const ColumnSolution& solution) const {
    return program_.sharing == Sharing::equal ? max_columns(solution)
                                              : static_cast<std::uint32_t>(solution.parts.size());
  }

  /// What is left when the trees get the largest amount that leaves a completion; nothing when that is 0.
  std::optional<Rest> take(const Rest& rest, const std::vector<Column>& columns, Rational& amount) {
    constexpr int max_steps = 8;
    const std::vector<std::int64_t> loads = joint_loads(columns, rest.room.size());
    amount = rest.throughput;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      if (loads[r] > 0) amount = std::min(amount, Rational(rest.room[r] / loads[r]));
    }
    for (int step = 0; step < max_steps && amount > 0 && !is_spent(); ++step) {
      Rest next = left_of(rest, loads, amount);
      if (next.throughput == 0) return next;
      complete(next);
      if (next.solution.prices.empty()) return std::nullopt;
      if (next.is_complete()) {
        if (auto whole = leave_whole_trees(rest, loads, amount)) return whole;
        return next;
      }
      amount = amount_allowed(rest, loads, next, amount);
    }
    return std::nullopt;
  }

  /// A smaller amount, where there is one, that leaves as much of each dear resource as whole trees use: then one tree
  /// more may be enough, where the largest amount leaves odd bits.
  std::optional<Rest> leave_whole_trees(const Rest& rest, const std::vector<std::int64_t>& loads, Rational& amount) {
    constexpr std::int64_t max_parts = 6;
    std::int64_t step = 0;  // what any tree's loads are multiples of
    for (const TreeGroup& group : oracle_.groups().groups) step = std::gcd(step, group.copies);
    std::optional<Rational> best;
    for (std::int64_t parts = 2; parts <= max_parts; ++parts) {
      for (std::int64_t part = 1; part < parts; ++part) {
        const Rational part_amount = rest.throughput * part / parts;
        if (part_amount > amount || (best && part_amount <= *best)) continue;
        bool whole = true;
        for (std::size_t r = 0; r < loads.size() && whole; ++r) {
          if (whole_.prices[r] == 0) continue;
          const Rational left = (rest.room[r] - part_amount * loads[r]) / (rest.throughput - part_amount) / step;
          whole = denominator(left) == 1;
        }
        if (whole) best = part_amount;
      }
    }
    if (!best || *best == amount) return std::nullopt;
    Rest next = left_of(rest, loads, *best);
    complete(next);
    if (!next.is_complete()) return std::nullopt;
    amount = *best;
    return next;
  }

  /// Adds those columns to the known ones that may be part of a best packing: no others are used by what is left of
  /// one, since at the prices that prove the whole best, every tree in it is cheapest.
  void keep_cheapest(const std::vector<Column>& columns) {
    for (const Column& column : columns) {
      if (cost_of<BigInteger>(column, whole_.prices) == cheapest_.costs[column.group]) known_.push_back(column);
    }
  }

  /// Solves what is left, as far as there is work left to do.
  void complete(Rest& rest) {
    for (const Rational& value : rest.room) rest.scale = lcm(rest.scale, BigInteger(denominator(value)));
    MasterProgram program = program_;
    for (std::size_t r = 0; r < rest.room.size(); ++r) {
      program.capacity[r] = numerator(rest.room[r]) * (rest.scale / denominator(rest.room[r]));
    }
    ColumnLimits limits;
    limits.rounds = 100;
    limits.warm_rounds = 0;
    limits.seeds = known_;
    limits.shallow = true;
    limits.wanted = rest.throughput * rest.scale;
    limits.max_work = std::max<std::int64_t>(0, wanted_.max_work - work_);
    rest.solution = generate_columns(program, oracle_, limits);
    work_ += rest.solution.work;
    columns_seen_ += rest.solution.found.size();
    known_ = cheapest_.columns;
    keep_cheapest(rest.solution.found);
  }

  /// By the prices found for what `next` leaves, the most that the trees may get: with more, the prices prove that the
  /// rest is too small. What has no room left may have any price; of several the one that proves most is taken.
  [[nodiscard]] Rational amount_allowed(const Rest& rest, const std::vector<std::int64_t>& loads, const Rest& next,
                                        const Rational& amount) const {
    constexpr unsigned halvings = 12;
    std::vector<BigInteger> prices = next.solution.prices;
    BigInteger sum = 1;
    for (std::size_t r = 0; r < prices.size(); ++r) {
      if (next.room[r] != 0) sum += prices[r];
    }
    Rational least = amount;
    for (unsigned halving = 0; halving <= halvings; ++halving) {
      for (std::size_t r = 0; r < prices.size(); ++r) {
        if (next.room[r] == 0) prices[r] = sum >> halving;
      }
      least = std::min(least, amount_allowed(rest, loads, prices));
    }
    return least < amount ? least : Rational(0);
  }

  [[nodiscard]] Rational amount_allowed(const Rest& rest, const std::vector<std::int64_t>& loads,
                                        const std::vector<BigInteger>& prices) const {
    const BigInteger unit_cost = min_unit_cost(program_, oracle_.cheapest(prices).costs);
    Rational room_price = 0;
    Rational tree_price = 0;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      room_price += rest.room[r] * prices[r];
      tree_price += Rational(prices[r]) * loads[r];
    }
    const Rational excess = tree_price - unit_cost;
    if (excess <= 0) return rest.throughput;
    return std::max(Rational(0), Rational((room_price - rest.throughput * unit_cost) / excess));
  }

  const OrbitGraph& orbits_;
  const TreeOracle& oracle_;
  const FewTrees& wanted_;
  MasterProgram program_;
  const ColumnSolution& whole_;
  PricedColumns<BigInteger> cheapest_;  ///< At the whole's prices, by group.
  std::vector<Column> known_;
  std::size_t columns_seen_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace

std::uint32_t max_columns(const ColumnSolution& solution) {
  std::vector<std::uint32_t> count;
  std::uint32_t most = 0;
  for (const ColumnSolution::Part& part : solution.parts) {
    if (part.column.group >= count.size()) count.resize(part.column.group + 1, 0);
    most = std::max(most, ++count[part.column.group]);
  }
  return most;
}

ColumnSolution with_fewer_trees(const OrbitGraph& orbits, const TreeOracle& oracle, const ColumnSolution& solution,
                                const FewTrees& wanted) {
  return Thinning(orbits, oracle, solution, wanted).run();
}

}  // namespace espalier::planners
