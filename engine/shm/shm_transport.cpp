#include "engine/shm/shm_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/memory/page_map.h"
#include "engine/shm/shm_group.h"

namespace espalier::engine {
namespace {

constexpr std::int64_t probe_bytes = 4096;

}  // namespace

ShmTransport::ShmTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers,
                           bool is_oversubscribed)
    : control_(control), peers_(std::move(peers)), is_oversubscribed_(is_oversubscribed) {}

ShmTransport::~ShmTransport() {
  if (probe_.data != nullptr) device_->release(probe_.data, probe_bytes);
}

Result<std::string> ShmTransport::open(Device& device) {
  auto domain = SharedDomain::create(device);
  if (!domain) return tl::unexpected(domain.error());
  domain_ = std::move(*domain);
  device_ = &device;
  opens_memory_.resize(peers_.size());
  probe_ = make_probe();
  if (!probe_.shared.empty()) site_ = device.kernel_site().value_or(KernelSite{});
  const std::string_view site(reinterpret_cast<const char*>(&site_), sizeof(site_));
  return domain_->exported_directory() + std::string(site) + probe_.shared;
}

/// Nothing where the device has no memory for others.
ShmTransport::Probe ShmTransport::make_probe() const {
  if (!device_->shares_memory()) return {};
  const auto data = device_->allocate(probe_bytes, MemorySpace::device);
  if (!data) return {};
  auto shared = device_->share_memory(*data, probe_bytes);
  if (!shared) {
    device_->release(*data, probe_bytes);
    return {};
  }
  return {*data, *std::move(shared)};
}

/// Kernels of two processes take turns on a device, and would wait for each other by turns.
bool ShmTransport::runs_calls_with(const KernelSite& theirs) const {
  return site_.blocks > 0 && theirs.blocks > 0 && site_.device != theirs.device;
}

Result<Reach> ShmTransport::attach(std::uint32_t rank, std::string_view exported) {
  if (!rendezvous::share_memory(peers_[control_.rank()], peers_[rank])) {
    return fail(ErrorCode::unavailable, fmt::format("{} is another machine or container", peers_[rank].host_name));
  }
  const std::string_view directory = exported.substr(0, SharedDomain::exported_bytes());
  KernelSite site;
  if (exported.size() < directory.size() + sizeof(site)) {
    return fail(ErrorCode::unavailable, fmt::format("{} runs another version", peers_[rank].host_name));
  }
  std::memcpy(&site, exported.data() + directory.size(), sizeof(site));
  const std::string_view probe = exported.substr(directory.size() + sizeof(site));
  if (auto attached = domain_->attach(rank, directory); !attached) return tl::unexpected(attached.error());
  has_peers_ = true;
  if (probe.empty()) return Reach{"same machine"};
  const auto opened = device_->open_memory(probe);
  opens_memory_[rank] = opened.has_value();
  if (!opened) return Reach{"same machine; device memory is staged: " + opened.error().message};
  device_->close_memory(*opened);
  const bool carries_out_calls = runs_calls_with(site);
  return Reach{fmt::format("same machine; device '{}' opens its memory{}", device_->name(),
                           carries_out_calls ? ", kernels carry out calls" : ""),
               carries_out_calls};
}

Result<std::unique_ptr<GroupTransport>> ShmTransport::join(const GroupInfo& group) {
  auto joined = ShmGroup::join(*this, group);
  if (!joined) return tl::unexpected(joined.error());
  return std::unique_ptr<GroupTransport>(std::move(*joined));
}

Result<Transport::Allocation> ShmTransport::allocate(std::int64_t bytes, MemorySpace space) {
  if (space != MemorySpace::host) return Allocation{};
  const auto memory = domain_->allocate(bytes);
  if (!memory) return tl::unexpected(memory.error());
  return Allocation{memory->data, std::make_unique<SharedRegistration>(*domain_, memory->id)};
}

Result<std::unique_ptr<Registration>> ShmTransport::register_memory(void* data, std::int64_t bytes, MemorySpace space,
                                                                    Device& device) {
  if (space == MemorySpace::pinned || (space == MemorySpace::device && !shares_device_memory())) return nullptr;
  if (space == MemorySpace::host) {
    if (auto plain = check_replaceable(data, bytes); !plain) return tl::unexpected(plain.error());
    PrivateAtFork private_at_fork(static_cast<std::byte*>(data), bytes);  // Before there is anything to share.
    const auto id = domain_->adopt(data, bytes);
    if (!id) return tl::unexpected(id.error());
    return std::make_unique<SharedRegistration>(*domain_, *id, std::move(private_at_fork));
  }
  const auto shared = device.share_memory(static_cast<std::byte*>(data), bytes);
  if (!shared) return tl::unexpected(shared.error());
  const auto id = domain_->name_device_memory(*shared);
  if (!id) return tl::unexpected(id.error());
  return std::make_unique<SharedRegistration>(*domain_, *id);
}

Result<DeviceQueue*> ShmTransport::kernel_queue() {
  if (!kernel_queue_) {
    auto queue = device_->make_queue();
    if (!queue) return tl::unexpected(queue.error());
    kernel_queue_ = std::move(*queue);
  }
  return kernel_queue_.get();
}

bool ShmTransport::arm() {
  announced_ = domain_->own_doorbell().announce();
  return true;
}

void ShmTransport::wake() {
  if (domain_) domain_->own_doorbell().ring();
}

}  // namespace espalier::engine
