#include "compute/product.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/constants.h"

namespace espalier::compute {
namespace {

struct Tile {
  double rows;
  double columns;
  double part;  ///< Of a large tile's rate.
};
constexpr Tile tiles[] = {{128, 256, 1},
                          {256, 128, 1},
                          {128, 128, constants::square_tile},
                          {128, 64, constants::narrow_tile},
                          {64, 128, constants::narrow_tile},
                          {64, 64, constants::small_tile}};

double turns(double tiles_in_all, int multiprocessors) {
  const double exact = tiles_in_all / multiprocessors;
  return exact > 1 ? exact + constants::turn * (std::ceil(exact) - exact) : 1;
}

}  // namespace

double Product::operations() const {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) *
         static_cast<double>(batch);
}

double product_seconds(const Gpu& gpu, const Product& product) {
  const auto m = static_cast<double>(product.rows), n = static_cast<double>(product.columns);
  const auto k = static_cast<double>(product.depth), batch = static_cast<double>(product.batch);
  const double peak = gpu.peak(product.precision);
  double fastest = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double count = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch;
    for (const double parts : {1.0, 2.0, 4.0, 8.0}) {
      if (parts > 1 && k / parts < constants::min_depth) break;
      const double of_tile =
          2 * tile.rows * tile.columns * (k / parts) / (peak / gpu.multiprocessors * gpu.tile_part * tile.part) +
          gpu.tile_overhead * tile.rows * tile.columns / (128 * 256);
      double all = turns(count * parts, gpu.multiprocessors) * of_tile;
      if (parts > 1) all += constants::split_overhead + parts * m * n * batch * 8 / gpu.stream();
      fastest = std::min(fastest, all);
    }
  }
  const double by_power = product.operations() / (peak * gpu.sustained);
  const double in = bytes_of(product.precision), out = std::max(in, 2.0);
  const double moved = batch * (in * (m * k + k * n) + out * m * n) / gpu.stream();
  const double computed = std::max(fastest, by_power);
  const double square = computed * computed, other = moved * moved;
  return std::sqrt(std::sqrt(square * square + other * other)) + constants::kernel_overhead;
}

}  // namespace espalier::compute
