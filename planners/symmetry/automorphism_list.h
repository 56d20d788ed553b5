#pragma once

// Tested by: tests/unit/planners/symmetry_test.cpp

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planners/symmetry/abelian_group.h"

namespace espalier::planners {

/// The cycles of one permutation, so that every power of it is applied at once.
class Cycles {
 public:
  explicit Cycles(const Permutation& permutation);

  /// Where the power takes a number.
  [[nodiscard]] std::uint32_t after(std::uint32_t number, std::uint32_t times) const {
    const Place& place = places_[number];
    if (times >= place.length) times %= place.length;
    const std::uint32_t to = place.at + times;
    return order_[place.begin + (to < place.length ? to : to - place.length)];
  }

 private:
  struct Place {
    std::uint32_t begin = 0;  ///< Of the number's cycle in `order_`.
    std::uint32_t length = 0;
    std::uint32_t at = 0;  ///< Of the number in its cycle.
  };
  std::vector<Place> places_;
  std::vector<std::uint32_t> order_;  ///< All numbers, cycle by cycle.
};

/// One element of a group, ready to be applied. Valid as long as the Automorphisms that made it.
class Automorphism {
 public:
  [[nodiscard]] std::uint32_t operator()(std::uint32_t number) const {
    for (std::size_t i = 0; i < count_; ++i) number = steps_[i].cycles->after(number, steps_[i].times);
    return number;
  }

 private:
  friend class Automorphisms;
  struct Step {
    const Cycles* cycles;
    std::uint32_t times;
  };
  std::size_t count_ = 0;
  std::array<Step, 64> steps_;  // the first `count_`: a generator at least doubles an order of 64 bits
};

/// All elements of a group, a few table look-ups away, in memory that does not grow with its order.
class Automorphisms {
 public:
  explicit Automorphisms(const AbelianGroup& group);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Requires: index < count(). The numbering is the group's.
  [[nodiscard]] Automorphism at(std::uint64_t index) const;

 private:
  struct Powers {
    std::uint64_t steps;
    Cycles cycles;
  };
  std::uint64_t count_;
  std::vector<Powers> powers_;  // by generator
};

}  // namespace espalier::planners
