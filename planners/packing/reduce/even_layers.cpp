#include "planners/packing/reduce/even_layers.h"

#include <algorithm>
#include <numeric>

namespace espalier::planners {

namespace {

std::int64_t rounded_up(const Rational& value) {
  const BigInteger up = (numerator(value) + denominator(value) - 1) / denominator(value);
  return up.convert_to<std::int64_t>();
}

}  // namespace

std::vector<PlaneLayer> even_layers(std::int64_t things, std::size_t planes) {
  std::vector<Rational> room(planes, make_rational(things, static_cast<std::int64_t>(planes)));
  std::vector<std::size_t> order(planes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<PlaneLayer> layers;
  for (Rational left = 1; left > 0;) {
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return room[a] > room[b]; });
    PlaneLayer layer{left, std::vector<std::int64_t>(planes, 0)};
    std::int64_t unplaced = things;
    for (const std::size_t plane : order) {
      const std::int64_t count = std::min(unplaced, rounded_up(room[plane] / left));
      if (count == 0) break;
      layer.counts[plane] = count;
      unplaced -= count;
      layer.part = std::min(layer.part, Rational(room[plane] / count));
    }
    for (std::size_t plane = 0; plane < planes; ++plane) room[plane] -= layer.part * layer.counts[plane];
    left -= layer.part;
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace espalier::planners
