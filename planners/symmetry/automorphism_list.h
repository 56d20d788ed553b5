#pragma once

#include <cstdint>
#include <vector>

#include "planners/symmetry/abelian_group.h"

namespace espalier::planners {

/// One element of a group, ready to be applied. Valid as long as the Automorphisms that made it.
class Automorphism {
 public:
  [[nodiscard]] std::uint32_t operator()(std::uint32_t number) const {
    for (const Permutation* step : steps_) number = (*step)[number];
    return number;
  }

 private:
  friend class Automorphisms;
  std::vector<const Permutation*> steps_;
};

/// All elements of a group, a few table look-ups away, in memory that grows with the square root of its order.
class Automorphisms {
 public:
  explicit Automorphisms(const AbelianGroup& group);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Requires: index < count(). The numbering is the group's.
  [[nodiscard]] Automorphism at(std::uint64_t index) const;

 private:
  /// The powers of one generator: the power a x small.size() + b is large[a] after small[b].
  struct Powers {
    std::uint64_t steps;
    std::vector<Permutation> small;
    std::vector<Permutation> large;
  };
  std::uint64_t count_;
  std::vector<Powers> powers_;
};

}  // namespace espalier::planners
