#pragma once

// Tested by: tests/unit/engine/verbs/verbs_transport_test.cpp

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/peers.h"
#include "engine/tcp/socket_waiter.h"
#include "engine/tcp/tcp_mesh.h"
#include "engine/transport/transport.h"
#include "engine/verbs/rail_devices.h"
#include "engine/verbs/verbs_device.h"

namespace espalier::engine {

/// Streams over the queue pairs of this rank's RDMA devices, its rails, one each. Their addresses go over connections
/// of the job's mesh, which authenticates both ends and is closed when the queue pair is connected.
class VerbsTransport final : public Transport {
 public:
  /// `control` outlives this; `peers` are the job's ranks.
  VerbsTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers, std::string secret,
                 VerbsOptions options);

  [[nodiscard]] std::string_view name() const override { return "verbs"; }
  Result<std::string> open(Device& device) override;
  Result<Reach> attach(std::uint32_t rank, std::string_view exported) override;
  Result<std::unique_ptr<GroupTransport>> join(const GroupInfo& group) override;
  Result<std::unique_ptr<Registration>> register_memory(void* data, std::int64_t bytes, MemorySpace space,
                                                        Device& device) override;
  [[nodiscard]] bool prefers_sleep() const override { return true; }
  [[nodiscard]] bool can_wake() const override { return sockets_->watches_any(); }
  bool arm() override;
  void sleep(std::chrono::nanoseconds longest) override { sockets_->sleep(longest); }
  void disarm() override {
    for (const auto& rail : rails_) rail->disarm();
  }

  [[nodiscard]] rendezvous::ControlPlane& control() { return control_; }
  [[nodiscard]] TcpMesh& mesh() { return *mesh_; }
  [[nodiscard]] SocketWaiter& sockets() { return *sockets_; }
  [[nodiscard]] VerbsDevice& rail(std::uint32_t number) { return *rails_[number]; }
  [[nodiscard]] const VerbsOptions& options() const { return options_; }
  [[nodiscard]] const TcpMesh::Target& target_of(std::uint32_t rank) const { return targets_[rank]; }
  /// How many rails a rank has.
  [[nodiscard]] std::uint32_t rails_of(std::uint32_t rank) const { return peer_rails_[rank].count; }
  /// The rail of a rank that a route means by this number.
  [[nodiscard]] std::uint32_t rail_of(std::uint32_t rank, std::uint32_t named) const;

 private:
  /// What a rank says of its rails.
  struct PeerRails {
    std::uint32_t count = 1;
    std::vector<std::uint32_t> of_nics;  ///< RailDevices::rail_of_nic.
  };
  [[nodiscard]] RailDevices choose_devices() const;

  rendezvous::ControlPlane& control_;
  std::vector<rendezvous::PeerInfo> peers_;
  std::string secret_;
  VerbsOptions options_;
  std::vector<std::unique_ptr<VerbsDevice>> rails_;
  std::unique_ptr<TcpMesh> mesh_;
  std::optional<SocketWaiter> sockets_;
  std::string why_these_;                 ///< RailDevices::reason.
  std::vector<TcpMesh::Target> targets_;  ///< By rank.
  std::vector<PeerRails> peer_rails_;     ///< By rank.
};

}  // namespace espalier::engine
