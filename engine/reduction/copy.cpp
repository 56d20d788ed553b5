#include "engine/reduction/copy.h"

#include <cstdint>
#include <cstring>

#ifdef ESPALIER_X86_KERNELS
#include <emmintrin.h>
#endif

namespace espalier::engine::reduction {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes >= uncached_copy_bytes) {
    copy_bytes_uncached(to, from, bytes);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

void copy_bytes_uncached(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
#ifdef ESPALIER_X86_KERNELS
  constexpr std::size_t line = 64;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const std::size_t lead = (line - reinterpret_cast<std::uintptr_t>(target) % line) % line;
  if (bytes >= lead + line) {
    std::memcpy(target, source, lead);
    std::size_t at = lead;
    // Whole lines: the CPU gathers the four stores of a line and sends it out at once.
    for (; bytes - at >= line; at += line) {
      __m128i part[4];
      std::memcpy(part, source + at, line);
      for (std::size_t i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(target + at) + i, part[i]);
    }
    _mm_sfence();  // such stores are not ordered with others until here
    if (at < bytes) std::memcpy(target + at, source + at, bytes - at);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace espalier::engine::reduction
