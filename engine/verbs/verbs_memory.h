#pragma once

// Tested by: tests/unit/engine/verbs/verbs_memory_test.cpp

#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/memory/memory.h"
#include "engine/transport/stream_end.h"
#include "engine/verbs/verbs_device.h"

namespace espalier::engine {

/// Memory that the rank's devices read and that peers write. It ends with the caller's registration: nothing else keeps
/// it, and nothing finds it by its address.
class VerbsRegistration final : public Registration {
 public:
  using Rails = std::span<const std::unique_ptr<VerbsDevice>>;

  /// Errors: unavailable, for want of locked memory.
  static Result<std::unique_ptr<Registration>> create(Rails rails, void* data, std::int64_t bytes);
  /// Memory of a device: as a dma-buf, or by its address, as modules such as nvidia_peermem let drivers take it. Null
  /// where a rail's driver takes neither: it is copied through pinned memory then.
  static std::unique_ptr<Registration> of_device(Rails rails, Device& device, void* data, std::int64_t bytes);

  [[nodiscard]] std::uint32_t local_key(std::uint32_t rail) const { return regions_[rail]->lkey; }
  [[nodiscard]] std::uint32_t remote_key(std::uint32_t rail) const { return regions_[rail]->rkey; }

 private:
  std::vector<VerbsObject<ibv_mr, ibv_dereg_mr>> regions_;  ///< By rail.
};

/// Of a memory of this rank in a call; null where it is not registered.
inline const VerbsRegistration* verbs_registration(const StreamCall& call, Place place, const Transport& transport) {
  const Memory* memory = call.buffers->registered[static_cast<std::size_t>(place)].memory;
  return memory == nullptr ? nullptr : static_cast<const VerbsRegistration*>(memory->registration(&transport));
}

}  // namespace espalier::engine
