#include "engine/shm/shm_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/shm/shm_group.h"

namespace espalier::engine {

ShmTransport::ShmTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers,
                           bool is_oversubscribed)
    : control_(control), peers_(std::move(peers)), is_oversubscribed_(is_oversubscribed) {}

Result<std::string> ShmTransport::open() {
  auto domain = SharedDomain::create();
  if (!domain) return tl::unexpected(domain.error());
  domain_ = std::move(*domain);
  return domain_->exported_directory();
}

Result<std::string> ShmTransport::attach(std::uint32_t rank, std::string_view exported) {
  if (!rendezvous::share_memory(peers_[control_.rank()], peers_[rank])) {
    return fail(ErrorCode::unavailable, fmt::format("{} is another machine or container", peers_[rank].host_name));
  }
  if (auto attached = domain_->attach(rank, exported); !attached) return tl::unexpected(attached.error());
  has_peers_ = true;
  return std::string("same machine");
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
                                                                    Device&) {
  if (space != MemorySpace::host) return nullptr;
  const auto id = domain_->adopt(data, bytes);
  if (!id) return tl::unexpected(id.error());
  return std::make_unique<SharedRegistration>(*domain_, *id);
}

bool ShmTransport::arm() {
  announced_ = domain_->own_doorbell().announce();
  return true;
}

void ShmTransport::wake() {
  if (domain_) domain_->own_doorbell().ring();
}

}  // namespace espalier::engine
