#include "planners/symmetry/abelian_group.h"

namespace espalier::planners {

Permutation AbelianGroup::element(std::uint64_t index) const {
  Permutation product = identity_permutation(size_);
  for (std::size_t g = 0; g < generators_.size(); ++g) {
    const std::uint64_t times = index % steps_[g];
    index /= steps_[g];
    if (times != 0) product = compose(product, power(generators_[g], times));
  }
  return product;
}

std::vector<std::uint32_t> AbelianGroup::images_of(std::uint32_t number) const {
  std::vector<std::uint32_t> images = {number};
  for (std::size_t g = 0; g < generators_.size(); ++g) {
    const std::size_t before = images.size();
    for (std::size_t i = before; i < before * steps_[g]; ++i) images.push_back(generators_[g][images[i - before]]);
  }
  return images;
}

std::optional<AbelianGroup> AbelianGroup::with(const Permutation& generator, std::uint32_t base,
                                               std::uint64_t most) const {
  constexpr std::uint64_t nowhere = UINT64_MAX;
  std::vector<std::uint64_t> element_to(size_, nowhere);
  const std::vector<std::uint32_t> images = images_of(base);
  for (std::uint64_t i = 0; i < images.size(); ++i) {
    if (element_to[images[i]] != nowhere) return std::nullopt;
    element_to[images[i]] = i;
  }
  std::uint64_t steps = 1;
  std::uint32_t at = generator[base];
  while (element_to[at] == nowhere) {
    at = generator[at];
    ++steps;
  }
  if (steps == 1 || steps > most / order_) return std::nullopt;
  if (power(generator, steps) != element(element_to[at])) return std::nullopt;
  AbelianGroup larger = *this;
  larger.order_ *= steps;
  larger.generators_.push_back(generator);
  larger.steps_.push_back(steps);
  return larger;
}

}  // namespace espalier::planners
