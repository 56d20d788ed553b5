#include "engine/verbs/verbs_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "engine/verbs/queue_pair.h"
#include "engine/verbs/verbs_memory.h"
#include "engine/verbs/verbs_stream.h"

namespace espalier::engine {
namespace {

/// An address fits any socket buffer: a short write is a broken connection.
Result<void> send_address(int socket, const QueuePair& pair) {
  const std::string address = pair.address();
  if (send(socket, address.data(), address.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(address.size())) return {};
  return fail(ErrorCode::unavailable, "the other end closed the connection");
}

/// The sender's address: it sends it as soon as it is connected.
Result<std::string> receive_address(int socket, std::chrono::steady_clock::time_point deadline,
                                    const rendezvous::ControlPlane& control) {
  std::string address(QueuePair::address_size, '\0');
  std::size_t received = 0;
  while (received < address.size()) {
    const ssize_t got = recv(socket, address.data() + received, address.size() - received, MSG_DONTWAIT);
    if (got > 0) {
      received += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0) return fail(ErrorCode::unavailable, "the other end closed the connection");
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(ErrorCode::unavailable, "the other end did not answer in time");
    }
    pollfd waiting{socket, POLLIN, 0};
    poll(&waiting, 1, 20);
  }
  return address;
}

class VerbsGroup final : public GroupTransport {
 public:
  VerbsGroup(VerbsTransport& transport, GroupInfo info) : transport_(transport), info_(std::move(info)) {}

  [[nodiscard]] std::uint32_t choose_stream(const Schedule&, const Transfer& transfer) const override {
    return transfer.first_slice.value() % std::max(1U, transport_.options().connections);
  }

  /// One slot: what is added is taken from where it arrived.
  [[nodiscard]] Bytes default_chunk() const override { return Bytes{static_cast<std::int64_t>(slot_payload)}; }

  Result<std::unique_ptr<Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                          std::chrono::steady_clock::time_point deadline) override {
    auto pair = QueuePair::create(transport_.device(), transport_.options());
    if (!pair) return tl::unexpected(pair.error());
    auto socket =
        transport_.mesh().connect({info_.id, info_.members[info_.self], stream},
                                  transport_.target_of(info_.members[member]), deadline, transport_.control());
    if (!socket) return tl::unexpected(socket.error());
    if (auto watched = transport_.sockets().watch(socket->get()); !watched) return tl::unexpected(watched.error());
    if (auto sent = send_address(socket->get(), **pair); !sent) return tl::unexpected(sent.error());
    return make_verbs_sender(transport_, transport_.device(), std::move(*pair), std::move(*socket),
                             info_.members[member]);
  }

  Result<std::unique_ptr<Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                           std::chrono::steady_clock::time_point deadline) override {
    auto pair = QueuePair::create(transport_.device(), transport_.options());
    if (!pair) return tl::unexpected(pair.error());
    const auto socket =
        transport_.mesh().accept({info_.id, info_.members[member], stream}, deadline, transport_.control());
    if (!socket) return tl::unexpected(socket.error());
    const auto address = receive_address(socket->get(), deadline, transport_.control());
    if (!address) return tl::unexpected(address.error());
    if (auto connected = (*pair)->connect(*address); !connected) return tl::unexpected(connected.error());
    if (auto sent = send_address(socket->get(), **pair); !sent) return tl::unexpected(sent.error());
    return make_verbs_receiver(transport_, transport_.device(), std::move(*pair), info_.members[info_.self],
                               info_.members[member]);
  }

 private:
  VerbsTransport& transport_;
  GroupInfo info_;
};

}  // namespace

VerbsTransport::VerbsTransport(rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers,
                               std::string secret, VerbsOptions options)
    : control_(control),
      peers_(std::move(peers)),
      secret_(std::move(secret)),
      options_(std::move(options)),
      targets_(peers_.size()) {}

Result<std::string> VerbsTransport::open() {
  const std::vector<std::string>& names = options_.devices;
  auto device = VerbsDevice::open(names.empty() ? "" : names[control_.rank() % names.size()], options_);
  if (!device) return tl::unexpected(device.error());
  device_ = std::move(*device);
  auto sockets = SocketWaiter::create(control_.failure_fd());
  if (!sockets) return tl::unexpected(sockets.error());
  sockets_.emplace(std::move(*sockets));
  for (const int fd : {device_->completions_fd(), device_->events_fd()}) {
    if (auto watched = sockets_->watch(fd); !watched) return tl::unexpected(watched.error());
  }
  auto mesh = TcpMesh::create(control_.local_address(), secret_);
  if (!mesh) return tl::unexpected(mesh.error());
  mesh_ = std::move(*mesh);
  return std::to_string(mesh_->port());
}

Result<std::string> VerbsTransport::attach(std::uint32_t rank, std::string_view exported) {
  std::from_chars(exported.data(), exported.data() + exported.size(), targets_[rank].port);
  if (!peers_[rank].addresses.empty()) targets_[rank].address = peers_[rank].addresses.front();
  return fmt::format("verbs was asked for; this rank's device is {}", device_->name());
}

Result<std::unique_ptr<GroupTransport>> VerbsTransport::join(const GroupInfo& group) {
  return std::make_unique<VerbsGroup>(*this, group);
}

Result<std::unique_ptr<Registration>> VerbsTransport::register_memory(void* data, std::int64_t bytes,
                                                                      MemorySpace space) {
  if (space == MemorySpace::device || !device_) return nullptr;
  return VerbsRegistration::create(*device_, data, bytes);
}

bool VerbsTransport::arm() {
  device_->disarm();  // A notice that nobody took would hide the next.
  device_->arm();
  return true;
}

}  // namespace espalier::engine
