#include "engine/verbs/verbs_memory.h"

#include <fmt/format.h>

#include <cerrno>

#include "base/error_text.h"

namespace espalier::engine {
namespace {

constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

}  // namespace

Result<std::unique_ptr<Registration>> VerbsRegistration::create(Rails rails, void* data, std::int64_t bytes) {
  auto made = std::make_unique<VerbsRegistration>();
  for (const auto& device : rails) {
    made->regions_.emplace_back(ibv_reg_mr(device->domain(), data, static_cast<std::size_t>(bytes), access));
    if (made->regions_.back()) continue;
    return fail(ErrorCode::unavailable,
                fmt::format("{} cannot register {} bytes: {}", device->name(), bytes, error_text(errno)),
                "raise the limit of locked memory (ulimit -l)");
  }
  return made;
}

std::unique_ptr<Registration> VerbsRegistration::of_device(Rails rails, Device& device, void* data,
                                                           std::int64_t bytes) {
  const auto exported = device.export_memory(static_cast<const std::byte*>(data), bytes);
  auto made = std::make_unique<VerbsRegistration>();
  for (const auto& rail : rails) {
    auto& region = made->regions_.emplace_back();
    if (exported) {
      region.reset(ibv_reg_dmabuf_mr(rail->domain(), static_cast<std::uint64_t>(exported->offset),
                                     static_cast<std::size_t>(bytes), reinterpret_cast<std::uint64_t>(data),
                                     exported->descriptor.get(), access));
    }
    if (!region) region.reset(ibv_reg_mr(rail->domain(), data, static_cast<std::size_t>(bytes), access));
    if (!region) return nullptr;
  }
  return made;
}

}  // namespace espalier::engine
