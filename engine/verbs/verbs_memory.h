#pragma once

#include "engine/memory/memory.h"
#include "engine/transport/stream_end.h"
#include "engine/verbs/verbs_device.h"

namespace espalier::engine {

/// Memory that the device reads and that peers write. It ends with the caller's registration: nothing else keeps it,
/// and nothing finds it by its address.
class VerbsRegistration final : public Registration {
 public:
  /// Errors: unavailable, for want of locked memory.
  static Result<std::unique_ptr<Registration>> create(const VerbsDevice& device, void* data, std::int64_t bytes);

  [[nodiscard]] std::uint32_t local_key() const { return region_->lkey; }
  [[nodiscard]] std::uint32_t remote_key() const { return region_->rkey; }

 private:
  VerbsObject<ibv_mr, ibv_dereg_mr> region_;
};

/// Of a memory of this rank in a call; null where it is not registered.
inline const VerbsRegistration* verbs_registration(const StreamCall& call, Place place, const Transport& transport) {
  const Memory* memory = call.buffers->registered[static_cast<std::size_t>(place)].memory;
  return memory == nullptr ? nullptr : static_cast<const VerbsRegistration*>(memory->registration(&transport));
}

}  // namespace espalier::engine
