#pragma once

// Tested by: tests/unit/planners/symmetry_test.cpp

#include <cstdint>
#include <span>
#include <vector>

namespace espalier::planners {

/// An automorphism of the numbers below its size: i becomes entry i.
using Permutation = std::vector<std::uint32_t>;

Permutation identity_permutation(std::size_t size);

/// First `first`, then `second`. Requires: equal sizes.
Permutation compose(const Permutation& first, const Permutation& second);

/// `base` applied `times` times. Cost: linear, whatever `times` is.
Permutation power(const Permutation& base, std::uint64_t times);

/// How often it must be applied to change nothing; 0 past 2^62.
std::uint64_t order_of(const Permutation& permutation);

/// The number of its orbit for each of the numbers below `size`: orbits of the group that the permutations generate,
/// counted from 0 in the order of their smallest members. Requires: permutations of `size` numbers.
struct Orbits {
  std::vector<std::uint32_t> of;
  std::vector<std::uint32_t> first;  ///< By orbit, its smallest member.
  std::vector<std::uint32_t> size;   ///< By orbit.

  [[nodiscard]] std::size_t count() const { return first.size(); }
};
Orbits find_orbits(std::span<const Permutation> permutations, std::size_t size);

}  // namespace espalier::planners
