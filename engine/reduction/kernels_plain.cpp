// Vectors of 16 bytes, which every 64-bit CPU has.
#include "engine/reduction/kernels.h"

namespace espalier::engine::reduction {

const KernelTable& plain_kernels() {
  static constexpr KernelTable table = make_table<16>();
  return table;
}

}  // namespace espalier::engine::reduction
