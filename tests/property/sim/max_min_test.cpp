#include "sim/fair/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/rational.h"

namespace espalier {
namespace {

using sim::FlowIndex;
using sim::MaxMin;
using Resources = std::vector<std::uint32_t>;

struct FlowSet {
  std::vector<std::int64_t> capacities;
  std::vector<std::optional<Resources>> flows;  // by number
};

Resources pick_resources(Random& random, std::size_t count) {
  Resources all(count);
  std::iota(all.begin(), all.end(), 0U);
  const std::size_t wanted = 1 + random.below(std::min<std::size_t>(count, 5));
  for (std::size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + random.below(count - i)]);
  all.resize(wanted);
  return all;
}

/// The rounds of MaxMin's description, resource by resource and from the start.
std::vector<std::int64_t> fill_by_definition(const FlowSet& set) {
  std::vector<std::int64_t> rates(set.flows.size(), -1);
  std::vector<std::int64_t> left = set.capacities;
  while (true) {
    std::vector<std::int64_t> waiting(left.size(), 0);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (!set.flows[i] || rates[i] >= 0) continue;
      for (const std::uint32_t resource : *set.flows[i]) ++waiting[resource];
    }
    const auto level = [&](std::size_t resource) {
      if (set.capacities[resource] == 0) return std::int64_t{0};
      return std::max<std::int64_t>(1, left[resource] / waiting[resource]);
    };
    std::optional<std::int64_t> lowest;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (waiting[i] > 0 && (!lowest || level(i) < *lowest)) lowest = level(i);
    }
    if (!lowest) return rates;
    std::vector<bool> is_lowest(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) is_lowest[i] = waiting[i] > 0 && level(i) == *lowest;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (!set.flows[i] || rates[i] >= 0) continue;
      if (std::ranges::none_of(*set.flows[i], [&](std::uint32_t r) { return is_lowest[r]; })) continue;
      rates[i] = *lowest;
      for (const std::uint32_t resource : *set.flows[i])
        left[resource] = std::max<std::int64_t>(0, left[resource] - *lowest);
    }
  }
}

/// Progressive filling in exact fractions: all flows without a rate rise together until a resource is full.
std::vector<Rational> fill_exactly(const FlowSet& set) {
  std::vector<Rational> rates(set.flows.size());
  std::vector<bool> has_rate(set.flows.size());
  Rational water = make_rational(0);
  while (true) {
    std::optional<Rational> rise;
    std::vector<Rational> left;
    std::vector<std::int64_t> waiting(set.capacities.size(), 0);
    for (std::size_t r = 0; r < set.capacities.size(); ++r) {
      left.push_back(make_rational(set.capacities[r]));
      for (std::size_t i = 0; i < rates.size(); ++i) {
        if (!set.flows[i] || std::ranges::count(*set.flows[i], r) == 0) continue;
        left[r] -= has_rate[i] ? rates[i] : water;
        waiting[r] += has_rate[i] ? 0 : 1;
      }
      if (waiting[r] == 0) continue;
      const Rational room = left[r] / make_rational(waiting[r]);
      if (!rise || room < *rise) rise = room;
    }
    if (!rise) return rates;
    water += *rise;
    std::vector<bool> full(set.capacities.size());
    for (std::size_t r = 0; r < full.size(); ++r) {
      full[r] = waiting[r] > 0 && left[r] == *rise * make_rational(waiting[r]);
    }
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (!set.flows[i] || has_rate[i]) continue;
      if (std::ranges::none_of(*set.flows[i], [&](std::uint32_t r) { return full[r]; })) continue;
      rates[i] = water;
      has_rate[i] = true;
    }
  }
}

/// Adds, removes and changes at random; calls `check` after every `solve`.
template <class Check>
void change_at_random(std::uint64_t seed, std::int64_t max_capacity, int steps, Check&& check) {
  Random random(seed);
  FlowSet set;
  set.capacities.resize(1 + random.below(8));
  for (std::int64_t& capacity : set.capacities) capacity = random.between(0, max_capacity);
  set.flows.resize(1 + random.below(12));
  MaxMin shares(set.capacities);
  for (int step = 0; step < steps; ++step) {
    const auto flow = static_cast<FlowIndex>(random.below(set.flows.size()));
    if (random.below(6) == 0) {
      const std::size_t resource = random.below(set.capacities.size());
      set.capacities[resource] = random.between(0, max_capacity);
      shares.set_capacity(static_cast<std::uint32_t>(resource), set.capacities[resource]);
    } else if (set.flows[flow]) {
      shares.remove(flow);
      set.flows[flow].reset();
    } else {
      set.flows[flow] = pick_resources(random, set.capacities.size());
      shares.add(flow, *set.flows[flow]);
    }
    if (random.below(3) == 0) continue;
    std::vector<std::int64_t> before;
    for (std::size_t i = 0; i < set.flows.size(); ++i) before.push_back(set.flows[i] ? shares.rate(FlowIndex(i)) : -1);
    const std::span<const FlowIndex> changed = shares.solve();
    for (std::size_t i = 0; i < set.flows.size(); ++i) {
      if (!set.flows[i]) continue;
      const bool differs = before[i] != shares.rate(FlowIndex(i));
      ASSERT_EQ(std::ranges::count(changed, FlowIndex(i)), differs ? 1 : 0) << "seed " << seed << " step " << step;
    }
    check(set, shares);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
  }
}

TEST(MaxMinProperty, RatesAreThoseOfTheDefinitionWhateverCameBefore) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    // Small capacities, so that divisions leave much over and levels are often equal.
    change_at_random(seed, seed % 2 == 0 ? 30 : 1'000'000, 60, [](const FlowSet& set, const MaxMin& shares) {
      const std::vector<std::int64_t> expected = fill_by_definition(set);
      for (std::size_t i = 0; i < set.flows.size(); ++i) {
        if (!set.flows[i]) continue;
        ASSERT_EQ(shares.rate(FlowIndex(i)), expected[i]);
      }
    });
  }
}

TEST(MaxMinProperty, RatesAreThoseOfExactProgressiveFillingButForTheirLastDigits) {
  // Capacities of 18 digits. A level is wrong by less than 1, and what is left for others by 1 for every flow before:
  // with a dozen flows that grows to some thousands at the most.
  constexpr std::int64_t most = 1'000'000'000'000'000'000;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    change_at_random(seed, most, 40, [](const FlowSet& set, const MaxMin& shares) {
      const std::vector<Rational> expected = fill_exactly(set);
      for (std::size_t i = 0; i < set.flows.size(); ++i) {
        if (!set.flows[i]) continue;
        const Rational difference = make_rational(shares.rate(FlowIndex(i))) - expected[i];
        ASSERT_LE(difference, make_rational(10'000));
        ASSERT_GE(difference, make_rational(-10'000));
      }
    });
  }
}

TEST(MaxMinProperty, NoResourceGivesMoreThanItHasAndEveryFlowHasABottleneck) {
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    change_at_random(seed, 1'000'000, 60, [](const FlowSet& set, const MaxMin& shares) {
      std::vector<std::int64_t> used(set.capacities.size(), 0);
      std::vector<std::int64_t> most(set.capacities.size(), 0);
      std::vector<std::int64_t> flows(set.capacities.size(), 0);
      for (std::size_t i = 0; i < set.flows.size(); ++i) {
        if (!set.flows[i]) continue;
        for (const std::uint32_t resource : *set.flows[i]) {
          used[resource] += shares.rate(FlowIndex(i));
          most[resource] = std::max(most[resource], shares.rate(FlowIndex(i)));
          ++flows[resource];
        }
      }
      // Below one unit per flow a share is 1 all the same.
      for (std::size_t r = 0; r < used.size(); ++r) ASSERT_LE(used[r], std::max(set.capacities[r], flows[r]));
      for (std::size_t i = 0; i < set.flows.size(); ++i) {
        if (!set.flows[i]) continue;
        const auto is_bottleneck = [&](std::uint32_t r) {
          return shares.rate(FlowIndex(i)) == most[r] && set.capacities[r] - used[r] < flows[r];
        };
        ASSERT_TRUE(std::ranges::any_of(*set.flows[i], is_bottleneck));
      }
    });
  }
}

}  // namespace
}  // namespace espalier
