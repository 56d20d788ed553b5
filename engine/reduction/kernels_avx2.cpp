// Vectors of 32 bytes and the conversions of F16C.
#include "engine/reduction/kernels.h"

namespace espalier::engine::reduction {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable table = make_table<32>();
  return table;
}

}  // namespace espalier::engine::reduction
