#include "engine/tcp/tcp_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/tcp/tcp_stream.h"

namespace espalier::engine {
namespace {

/// The connections of one communicator.
class TcpGroup final : public GroupTransport {
 public:
  TcpGroup(TcpTransport& transport, GroupInfo info) : transport_(transport), info_(std::move(info)) {}

  [[nodiscard]] std::uint32_t choose_stream(const Schedule&, const Transfer& transfer) const override {
    if (!transport_.options().routes.empty()) return transfer.route.value();
    return transfer.first_slice.value() % std::max(1U, transport_.options().sockets_per_peer);
  }

  /// Keeps a socket busy.
  [[nodiscard]] Bytes default_chunk() const override { return Bytes{std::int64_t{512} << 10}; }

  Result<std::unique_ptr<Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                          std::chrono::steady_clock::time_point deadline) override {
    TcpMesh::Target target = transport_.target_of(info_.members[member]);
    const std::vector<RouteAddress>& routes = transport_.options().routes;
    if (!routes.empty()) {
      const auto route = std::ranges::find(routes, stream, &RouteAddress::route);
      if (route == routes.end()) {
        return fail(ErrorCode::invalid_input, fmt::format("the address file has no route {}", stream));
      }
      target.addresses = {route->connect};
      target.bind = route->bind;
    }
    auto socket = transport_.mesh().connect({info_.id, info_.members[info_.self], stream}, target, deadline,
                                            transport_.control());
    if (auto ready = watch(socket); !ready) return tl::unexpected(ready.error());
    return make_tcp_sender(std::move(*socket), info_.members[member], {transport_.options().checksum});
  }

  Result<std::unique_ptr<Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                           std::chrono::steady_clock::time_point deadline) override {
    auto socket = transport_.mesh().accept({info_.id, info_.members[member], stream}, deadline, transport_.control());
    if (auto ready = watch(socket); !ready) return tl::unexpected(ready.error());
    return make_tcp_receiver(std::move(*socket), info_.members[info_.self], info_.members[member]);
  }

 private:
  Result<void> watch(const Result<FileDescriptor>& socket) {
    if (!socket) return tl::unexpected(socket.error());
    return transport_.sockets().watch(socket->get());
  }

  TcpTransport& transport_;
  GroupInfo info_;
};

}  // namespace

TcpTransport::TcpTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers, Options options)
    : control_(control), peers_(std::move(peers)), options_(std::move(options)), targets_(peers_.size()) {}

Result<std::string> TcpTransport::open(Device&) {
  auto sockets = SocketWaiter::create(control_.failure_fd());
  if (!sockets) return tl::unexpected(sockets.error());
  sockets_.emplace(std::move(*sockets));
  // Ranks of other machines may reach it at any of its addresses, and not at the one of the rendezvous.
  const bool listens_everywhere = !options_.routes.empty() || !rendezvous::share_network(peers_);
  auto mesh = TcpMesh::create(listens_everywhere ? "" : control_.local_address(), options_.secret, control_.rank());
  if (!mesh) return tl::unexpected(mesh.error());
  mesh_ = std::move(*mesh);
  return std::to_string(mesh_->port());
}

Result<Reach> TcpTransport::attach(std::uint32_t rank, std::string_view exported) {
  std::from_chars(exported.data(), exported.data() + exported.size(), targets_[rank].port);
  targets_[rank].addresses = rendezvous::addresses_towards(peers_[control_.rank()], peers_[rank]);
  targets_[rank].rank = rank;
  return Reach{};
}

Result<std::unique_ptr<GroupTransport>> TcpTransport::join(const GroupInfo& group) {
  return std::make_unique<TcpGroup>(*this, group);
}

}  // namespace espalier::engine
