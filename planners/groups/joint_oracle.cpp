#include "planners/groups/joint_oracle.h"

#include <algorithm>
#include <map>
#include <optional>

namespace espalier::planners {
namespace {

/// Appends an oracle's priced columns to those of all.
template <class Price>
void append(PricedColumns<Price> priced, std::uint32_t first_group, std::int64_t factor, PricedColumns<Price>& all) {
  for (std::size_t i = 0; i < priced.columns.size(); ++i) {
    Column& column = priced.columns[i];
    column.group += first_group;
    for (Entry& load : column.loads) load.value *= factor;
    all.columns.push_back(std::move(column));
    all.costs.push_back(priced.costs[i] * static_cast<Price>(factor));
  }
}

/// The sum of two columns, one after the other: as high as both together.
Column joined(const Column& a, const Column& b) {
  std::map<std::uint32_t, std::int64_t> loads;
  for (const Column* column : {&a, &b}) {
    for (const Entry load : column->loads) loads[load.index] += load.value;
  }
  Column sum{0, {}, a.edges};
  for (const auto& [index, value] : loads) sum.loads.push_back({index, value});
  sum.height = a.height + b.height;
  sum.min_height = a.min_height + b.min_height;
  sum.edges.insert(sum.edges.end(), b.edges.begin(), b.edges.end());
  return sum;
}

/// The pair of one root that costs least. The out-trees of the k-th root are of group 2k, its in-trees of group 2k + 1.
template <class Price>
PricedColumns<Price> cheapest_pair(const PricedColumns<Price>& trees) {
  std::vector<std::optional<std::size_t>> cheapest;  // by group
  for (std::size_t i = 0; i < trees.columns.size(); ++i) {
    const std::size_t group = trees.columns[i].group;
    if (group >= cheapest.size()) cheapest.resize(group + 1);
    if (!cheapest[group] || trees.costs[i] < trees.costs[*cheapest[group]]) cheapest[group] = i;
  }
  std::size_t best = 0;
  const auto cost = [&](std::size_t out) -> Price {
    return trees.costs[*cheapest[out]] + trees.costs[*cheapest[out + 1]];
  };
  for (std::size_t out = 2; out + 1 < cheapest.size(); out += 2) {
    if (cost(out) < cost(best)) best = out;
  }
  PricedColumns<Price> priced;
  priced.columns.push_back(joined(trees.columns[*cheapest[best]], trees.columns[*cheapest[best + 1]]));
  priced.costs.push_back(cost(best));
  return priced;
}

}  // namespace

void JointOracle::add(std::unique_ptr<PricingOracle> oracle, std::uint32_t group_count, std::int64_t factor) {
  members_.push_back({std::move(oracle), group_count_, factor});
  group_count_ += group_count;
}

PricedColumns<double> JointOracle::cheapest(std::span<const double> prices) const {
  PricedColumns<double> all;
  for (const Member& member : members_) append(member.oracle->cheapest(prices), member.first_group, member.factor, all);
  return all;
}

PricedColumns<BigInteger> JointOracle::cheapest(std::span<const BigInteger> prices) const {
  PricedColumns<BigInteger> all;
  for (const Member& member : members_) append(member.oracle->cheapest(prices), member.first_group, member.factor, all);
  return all;
}

PricedColumns<double> JointOracle::shallow(std::span<const double> prices, double weight) const {
  PricedColumns<double> all;
  for (const Member& member : members_) {
    append(member.oracle->shallow(prices, weight), member.first_group, member.factor, all);
  }
  return all;
}

PricedColumns<double> TreePairOracle::cheapest(std::span<const double> prices) const {
  return cheapest_pair(trees_.cheapest(prices));
}

PricedColumns<BigInteger> TreePairOracle::cheapest(std::span<const BigInteger> prices) const {
  return cheapest_pair(trees_.cheapest(prices));
}

PricedColumns<double> TreePairOracle::shallow(std::span<const double> prices, double weight) const {
  return cheapest_pair(trees_.shallow(prices, weight));
}

}  // namespace espalier::planners
