#include "engine/device/device.h"
#include "engine/reduction/copy.h"
#include "engine/reduction/reduce.h"

namespace espalier::engine {

void HostDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes) { copy_bytes(to, from, bytes); }

void HostDevice::reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
                        std::span<const void* const> sources, std::size_t element_count) {
  find_reduce_to_many(type, operation)(targets.data(), targets.size(), first, sources.data(), sources.size(),
                                       element_count);
}

void HostDevice::divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) {
  divide_by(type, data, element_count, ranks);
}

}  // namespace espalier::engine
