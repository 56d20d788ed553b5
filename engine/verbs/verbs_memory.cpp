#include "engine/verbs/verbs_memory.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace espalier::engine {

Result<std::unique_ptr<Registration>> VerbsRegistration::create(std::span<const std::unique_ptr<VerbsDevice>> rails,
                                                                void* data, std::int64_t bytes) {
  auto made = std::make_unique<VerbsRegistration>();
  for (const auto& device : rails) {
    made->regions_.emplace_back(ibv_reg_mr(device->domain(), data, static_cast<std::size_t>(bytes),
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (made->regions_.back()) continue;
    return fail(
        ErrorCode::unavailable,
        fmt::format("{} cannot register {} bytes: {}", device->name(), bytes, std::generic_category().message(errno)),
        "raise the limit of locked memory (ulimit -l)");
  }
  return made;
}

}  // namespace espalier::engine
