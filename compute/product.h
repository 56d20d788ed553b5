#pragma once

// Tested by: tests/unit/compute/product_test.cpp

#include <cstdint>

#include "compute/gpu.h"

namespace espalier::compute {

/// A product of matrices: rows x depth by depth x columns, `batch` of them at once.
struct Product {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t depth = 1;
  std::int64_t batch = 1;
  Precision precision = Precision::bf16;

  [[nodiscard]] double operations() const;
};

/// Seconds that a product keeps a GPU busy.
///
/// The output is cut into tiles of one of six shapes, the depth into up to eight parts; multiprocessors take tiles in
/// turn, and a last turn that is not full costs a part of a whole one. No faster than the power allows; memory's time
/// is added as the fourth power mean. The fastest cut counts. Requires: positive sizes.
double product_seconds(const Gpu& gpu, const Product& product);

}  // namespace espalier::compute
