// Vectors of 64 bytes.
#include "engine/reduction/kernels.h"

namespace espalier::engine::reduction {

const KernelTable& avx512_kernels() {
  static constexpr KernelTable table = make_table<64>();
  return table;
}

}  // namespace espalier::engine::reduction
