#include "planners/symmetry/permutation.h"

#include <numeric>

#include "base/disjoint_sets.h"

namespace espalier::planners {

namespace {

constexpr std::uint64_t max_order = std::uint64_t{1} << 62U;

/// Calls `visit` with each cycle.
template <class Visit>
void visit_cycles(const Permutation& permutation, Visit visit) {
  std::vector<bool> met(permutation.size(), false);
  std::vector<std::uint32_t> cycle;
  for (std::uint32_t start = 0; start < permutation.size(); ++start) {
    if (met[start]) continue;
    cycle.clear();
    for (std::uint32_t at = start; !met[at]; at = permutation[at]) {
      met[at] = true;
      cycle.push_back(at);
    }
    visit(cycle);
  }
}

}  // namespace

Permutation identity_permutation(std::size_t size) {
  Permutation identity(size);
  std::iota(identity.begin(), identity.end(), 0U);
  return identity;
}

Permutation compose(const Permutation& first, const Permutation& second) {
  Permutation both(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) both[i] = second[first[i]];
  return both;
}

Permutation power(const Permutation& base, std::uint64_t times) {
  Permutation result(base.size());
  visit_cycles(base, [&](const std::vector<std::uint32_t>& cycle) {
    const std::size_t shift = times % cycle.size();
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const std::size_t to = i + shift;
      result[cycle[i]] = cycle[to < cycle.size() ? to : to - cycle.size()];
    }
  });
  return result;
}

std::uint64_t order_of(const Permutation& permutation) {
  std::uint64_t order = 1;
  visit_cycles(permutation, [&](const std::vector<std::uint32_t>& cycle) {
    const std::uint64_t factor = cycle.size() / std::gcd(order, std::uint64_t{cycle.size()});
    order = order > max_order / factor ? 0 : order * factor;
  });
  return order;
}

Orbits find_orbits(std::span<const Permutation> permutations, std::size_t size) {
  DisjointSets sets(size);
  for (const Permutation& permutation : permutations) {
    for (std::uint32_t i = 0; i < size; ++i) sets.join(i, permutation[i]);
  }
  Orbits orbits;
  orbits.of.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t root = sets.find(i);
    if (root == i) {
      orbits.of[i] = static_cast<std::uint32_t>(orbits.count());
      orbits.first.push_back(i);
      orbits.size.push_back(0);
    } else {
      orbits.of[i] = orbits.of[root];
    }
    ++orbits.size[orbits.of[i]];
  }
  return orbits;
}

}  // namespace espalier::planners
