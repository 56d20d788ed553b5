#pragma once

// Tested by: tests/unit/planners/symmetry_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/symmetry/permutation.h"

namespace espalier::planners {

/// A group of commuting automorphisms, given by a chain of generators: every element is one product of powers of them,
/// each power below the generator's step count.
///
/// Invariants: (1) some number, the base, is moved by every element but the first; so the images of the base, as many
/// as there are elements, tell the elements apart.
class AbelianGroup {
 public:
  /// The group of one element on the numbers below `size`. Requires: size > 0.
  explicit AbelianGroup(std::size_t size) : size_(size) {}

  [[nodiscard]] std::uint64_t order() const { return order_; }
  [[nodiscard]] std::span<const Permutation> generators() const { return generators_; }
  /// By generator: its smallest power that those before it make. An element's number counts the powers of the
  /// generators, the first one fastest.
  [[nodiscard]] std::span<const std::uint64_t> steps() const { return steps_; }

  /// The element with a number below `order()`; 0 is the one that changes nothing. Cost: linear per generator.
  [[nodiscard]] Permutation element(std::uint64_t index) const;
  /// Where each element takes a number, by the elements' numbers. Cost: O(order).
  [[nodiscard]] std::vector<std::uint32_t> images_of(std::uint32_t number) const;

  /// This group and one more generator; nothing when that adds no element, makes more than `most` of them, or when
  /// `base` would not be moved by all elements but the first. Requires: an automorphism that commutes with all
  /// generators.
  [[nodiscard]] std::optional<AbelianGroup> with(const Permutation& generator, std::uint32_t base,
                                                 std::uint64_t most) const;

  /// The same group acting on other numbers: `map` says how each generator acts there.
  template <class Map>
  [[nodiscard]] AbelianGroup mapped(std::size_t size, Map map) const {
    AbelianGroup other = *this;
    other.size_ = size;
    for (Permutation& generator : other.generators_) generator = map(generator);
    return other;
  }

 private:
  std::size_t size_;
  std::uint64_t order_ = 1;
  std::vector<Permutation> generators_;
  std::vector<std::uint64_t> steps_;
};

}  // namespace espalier::planners
