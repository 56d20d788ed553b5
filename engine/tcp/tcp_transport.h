#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

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
#include "engine/transport/route_address.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// Streams over TCP connections, one each; every rank is in reach.
class TcpTransport final : public Transport {
 public:
  struct Options {
    std::string secret;
    bool checksum = false;
    std::uint32_t sockets_per_peer = 1;
    std::vector<RouteAddress> routes;
  };
  /// `control` outlives this; `peers` are the job's ranks.
  TcpTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers, Options options);

  [[nodiscard]] std::string_view name() const override { return "tcp"; }
  Result<std::string> open(Device& device) override;
  Result<Reach> attach(std::uint32_t rank, std::string_view exported) override;
  Result<std::unique_ptr<GroupTransport>> join(const GroupInfo& group) override;
  [[nodiscard]] bool can_wake() const override { return sockets_->watches_any(); }
  void sleep(std::chrono::nanoseconds longest) override { sockets_->sleep(longest); }

  [[nodiscard]] rendezvous::ControlPlane& control() { return control_; }
  [[nodiscard]] TcpMesh& mesh() { return *mesh_; }
  [[nodiscard]] SocketWaiter& sockets() { return *sockets_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const TcpMesh::Target& target_of(std::uint32_t rank) const { return targets_[rank]; }

 private:
  rendezvous::ControlPlane& control_;
  std::vector<rendezvous::PeerInfo> peers_;
  Options options_;
  std::unique_ptr<TcpMesh> mesh_;
  std::optional<SocketWaiter> sockets_;
  std::vector<TcpMesh::Target> targets_;  ///< By rank.
};

}  // namespace espalier::engine
