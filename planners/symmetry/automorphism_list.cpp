#include "planners/symmetry/automorphism_list.h"

namespace espalier::planners {

Cycles::Cycles(const Permutation& permutation) : places_(permutation.size()) {
  order_.reserve(permutation.size());
  for (std::uint32_t start = 0; start < permutation.size(); ++start) {
    if (places_[start].length != 0) continue;
    const auto begin = static_cast<std::uint32_t>(order_.size());
    std::uint32_t at = start;
    do {
      places_[at] = {begin, 1, static_cast<std::uint32_t>(order_.size()) - begin};
      order_.push_back(at);
      at = permutation[at];
    } while (at != start);
    const auto length = static_cast<std::uint32_t>(order_.size()) - begin;
    for (std::size_t i = begin; i < order_.size(); ++i) places_[order_[i]].length = length;
  }
}

Automorphisms::Automorphisms(const AbelianGroup& group) : count_(group.order()) {
  for (std::size_t g = 0; g < group.generators().size(); ++g) {
    powers_.push_back({group.steps()[g], Cycles(group.generators()[g])});
  }
}

Automorphism Automorphisms::at(std::uint64_t index) const {
  Automorphism automorphism;
  for (const Powers& powers : powers_) {
    const std::uint64_t times = index % powers.steps;
    index /= powers.steps;
    if (times == 0) continue;
    automorphism.steps_[automorphism.count_++] = {&powers.cycles, static_cast<std::uint32_t>(times)};
  }
  return automorphism;
}

}  // namespace espalier::planners
