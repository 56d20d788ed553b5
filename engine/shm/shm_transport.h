#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/memory/private_at_fork.h"
#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/peers.h"
#include "engine/shm/shared_domain.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// A memory that the ranks of the machine map.
class SharedRegistration final : public Registration {
 public:
  SharedRegistration(SharedDomain& domain, SharedBufferId id, PrivateAtFork private_at_fork = {})
      : domain_(domain), id_(id), private_at_fork_(std::move(private_at_fork)) {}
  ~SharedRegistration() override { domain_.free(id_); }
  [[nodiscard]] SharedBufferId id() const { return id_; }

 private:
  SharedDomain& domain_;
  SharedBufferId id_;
  PrivateAtFork private_at_fork_;  ///< Of pages of the caller, until they are private again.
};

/// Calls that a rank's device carries out, in the order in which the rank began them, the same on all: their kernels go
/// to the device in that order, whichever call all others have entered first. Else two ranks' kernels could each wait
/// for one that is behind the other's.
struct KernelTurns {
  std::uint64_t begun = 0;
  std::uint64_t gone = 0;  ///< To the device, or to the executor instead.
};

/// Streams through memory that ranks of one machine share.
class ShmTransport final : public Transport {
 public:
  /// `control` outlives this; `peers` are the job's ranks. `is_oversubscribed`: more of them on this machine than
  /// cores.
  ShmTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers, bool is_oversubscribed);
  ~ShmTransport() override;
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  [[nodiscard]] std::string_view name() const override { return "shm"; }
  Result<std::string> open(Device& device) override;
  Result<Reach> attach(std::uint32_t rank, std::string_view exported) override;
  Result<std::unique_ptr<GroupTransport>> join(const GroupInfo& group) override;
  Result<Allocation> allocate(std::int64_t bytes, MemorySpace space) override;
  Result<std::unique_ptr<Registration>> register_memory(void* data, std::int64_t bytes, MemorySpace space,
                                                        Device& device) override;
  [[nodiscard]] bool can_wake() const override { return has_peers_; }
  bool arm() override;
  void sleep(std::chrono::nanoseconds longest) override { domain_->own_doorbell().sleep(announced_, longest); }
  void disarm() override { domain_->own_doorbell().withdraw(); }
  void wake() override;
  [[nodiscard]] RankCores::Shown* own_core() override { return &domain_->own_core(); }
  [[nodiscard]] const RankCores::Shown* core_of(std::uint32_t rank) const override {
    return domain_->knows(rank) ? &domain_->core_of(rank) : nullptr;
  }
  void reclaim() override {
    domain_->release_freed();
    PrivateAtFork::forget_copies();
  }

  [[nodiscard]] KernelTurns& kernel_turns() { return kernel_turns_; }
  /// A queue of the device for kernels beside which the job's queue has work, too: one, for they go in one order.
  /// Errors: those of the device.
  [[nodiscard]] Result<DeviceQueue*> kernel_queue();
  [[nodiscard]] rendezvous::ControlPlane& control() { return control_; }
  [[nodiscard]] SharedDomain& domain() { return *domain_; }
  /// Where this rank's device carries out calls. Requires: opened.
  [[nodiscard]] const KernelSite& kernel_site() const { return site_; }
  [[nodiscard]] bool is_oversubscribed() const { return is_oversubscribed_; }
  /// Whether this rank's device has memory that others may open.
  [[nodiscard]] bool shares_device_memory() const { return !probe_.shared.empty(); }
  /// Whether this rank's device opens memory of that rank's. Requires: attached.
  [[nodiscard]] bool opens_memory_of(std::uint32_t rank) const { return opens_memory_[rank]; }

 private:
  /// A page of the device's memory, by which other ranks find out whether their devices open it.
  struct Probe {
    std::byte* data = nullptr;
    std::string shared;  ///< Empty: others cannot.
  };
  [[nodiscard]] Probe make_probe() const;
  /// Whether this rank's device and one that exported that carry out calls without the host.
  [[nodiscard]] bool runs_calls_with(const KernelSite& theirs) const;

  rendezvous::ControlPlane& control_;
  std::vector<rendezvous::PeerInfo> peers_;
  bool is_oversubscribed_;
  Device* device_ = nullptr;
  Probe probe_;
  KernelSite site_;  ///< Of the device; no blocks: its kernels carry out no calls.
  KernelTurns kernel_turns_;
  std::unique_ptr<DeviceQueue> kernel_queue_;
  std::vector<bool> opens_memory_;  ///< By rank.
  std::unique_ptr<SharedDomain> domain_;
  bool has_peers_ = false;
  std::uint32_t announced_ = 0;  ///< By `arm`, to the doorbell.
};

}  // namespace espalier::engine
