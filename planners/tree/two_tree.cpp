#include "planners/tree/two_tree.h"

namespace espalier::planners {

namespace {

/// In-order numbers 1..last: the lowest set bit of a place is its height, odd places are leaves. A place whose parent
/// in the full tree is past the end belongs to the nearest ancestor that is there; the highest place of all to the
/// source.
std::size_t in_order_parent(std::size_t place, std::size_t last) {
  const std::size_t lowest = place & (~place + 1);
  const std::size_t without = place ^ lowest;
  const std::size_t parent = without | (lowest << 1U);
  return parent <= last ? parent : without;
}

}  // namespace

TwoTree make_two_tree(std::size_t n) {
  TwoTree trees{std::vector<std::size_t>(n, 0), std::vector<std::size_t>(n, 0)};
  const std::size_t last = n - 1;
  // Mirroring an even number of places, or shifting an odd number by one, swaps odd and even: leaves and inner places.
  const bool mirror = last % 2 == 0;
  const auto turn = [&](std::size_t place) { return mirror ? last + 1 - place : place % last + 1; };
  const auto turn_back = [&](std::size_t place) { return mirror ? last + 1 - place : (place + last - 2) % last + 1; };
  for (std::size_t place = 1; place < n; ++place) {
    trees.first[place] = in_order_parent(place, last);
    const std::size_t parent = in_order_parent(turn(place), last);
    trees.second[place] = parent == 0 ? 0 : turn_back(parent);
  }
  return trees;
}

}  // namespace espalier::planners
