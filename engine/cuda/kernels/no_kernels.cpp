#include "engine/cuda/kernels/embedded_kernels.h"

namespace espalier::engine::cuda {

std::span<const unsigned char> embedded_kernels() { return {}; }

std::string_view why_no_kernels() { return ESPALIER_NO_KERNELS; }

}  // namespace espalier::engine::cuda
