#pragma once

#include <span>
#include <string_view>

namespace espalier::engine::cuda {

/// The fat binary of kernels.cu, as the driver loads it; empty where this program was built without.
std::span<const unsigned char> embedded_kernels();

/// Why it is empty.
std::string_view why_no_kernels();

}  // namespace espalier::engine::cuda
