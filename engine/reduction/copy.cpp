#include "engine/reduction/copy.h"

#include <cstring>

namespace espalier {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace espalier
