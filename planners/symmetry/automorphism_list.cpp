#include "planners/symmetry/automorphism_list.h"

namespace espalier::planners {

Automorphisms::Automorphisms(const AbelianGroup& group) : count_(group.order()) {
  for (std::size_t g = 0; g < group.generators().size(); ++g) {
    const Permutation& generator = group.generators()[g];
    Powers powers{group.steps()[g], {}, {}};
    std::uint64_t width = 1;
    while (width * width < powers.steps) ++width;
    for (std::uint64_t b = 0; b < width; ++b) powers.small.push_back(power(generator, b));
    for (std::uint64_t a = 0; a * width < powers.steps; ++a) powers.large.push_back(power(generator, a * width));
    powers_.push_back(std::move(powers));
  }
}

Automorphism Automorphisms::at(std::uint64_t index) const {
  Automorphism automorphism;
  for (const Powers& powers : powers_) {
    const std::uint64_t times = index % powers.steps;
    index /= powers.steps;
    const std::uint64_t width = powers.small.size();
    if (times % width != 0) automorphism.steps_.push_back(&powers.small[times % width]);
    if (times / width != 0) automorphism.steps_.push_back(&powers.large[times / width]);
  }
  return automorphism;
}

}  // namespace espalier::planners
