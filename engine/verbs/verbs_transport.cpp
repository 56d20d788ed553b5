#include "engine/verbs/verbs_transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

  /// The rails at both ends, and the queue pair between them.
  [[nodiscard]] std::uint32_t choose_stream(const Schedule& schedule, const Transfer& transfer) const override {
    const std::uint32_t sources = rails_of(schedule.src(transfer).value());
    const std::uint32_t destinations = rails_of(schedule.dst(transfer).value());
    const std::uint32_t slice = transfer.first_slice.value();
    const std::uint32_t dealt = slice % std::max(sources, destinations);
    RailPair rails{dealt % sources, dealt % destinations};
    const auto& choose = transport_.options().choose_rails;
    if (const auto named = choose ? choose(schedule, transfer.route) : std::nullopt) {
      rails.source = transport_.rail_of(info_.members[schedule.src(transfer).value()], named->source);
      rails.destination = transport_.rail_of(info_.members[schedule.dst(transfer).value()], named->destination);
    }
    const std::uint32_t pair = rails.source * destinations + rails.destination;
    return pair * connections() + slice / std::max(sources, destinations) % connections();
  }

  /// One slot: what is added is taken from where it arrived.
  [[nodiscard]] Bytes default_chunk() const override { return Bytes{static_cast<std::int64_t>(slot_payload)}; }

  Result<std::unique_ptr<Sender>> connect(std::uint32_t member, std::uint32_t stream,
                                          std::chrono::steady_clock::time_point deadline) override {
    VerbsDevice& rail = transport_.rail(stream / connections() / rails_of(member));
    auto pair = QueuePair::create(rail, transport_.options());
    if (!pair) return tl::unexpected(pair.error());
    auto socket =
        transport_.mesh().connect({info_.id, info_.members[info_.self], stream},
                                  transport_.target_of(info_.members[member]), deadline, transport_.control());
    if (!socket) return tl::unexpected(socket.error());
    if (auto watched = transport_.sockets().watch(socket->get()); !watched) return tl::unexpected(watched.error());
    if (auto sent = send_address(socket->get(), **pair); !sent) return tl::unexpected(sent.error());
    return make_verbs_sender(transport_, rail, std::move(*pair), std::move(*socket), info_.members[member]);
  }

  Result<std::unique_ptr<Receiver>> accept(std::uint32_t member, std::uint32_t stream,
                                           std::chrono::steady_clock::time_point deadline) override {
    VerbsDevice& rail = transport_.rail(stream / connections() % rails_of(info_.self));
    auto pair = QueuePair::create(rail, transport_.options());
    if (!pair) return tl::unexpected(pair.error());
    const auto socket =
        transport_.mesh().accept({info_.id, info_.members[member], stream}, deadline, transport_.control());
    if (!socket) return tl::unexpected(socket.error());
    const auto address = receive_address(socket->get(), deadline, transport_.control());
    if (!address) return tl::unexpected(address.error());
    if (auto connected = (*pair)->connect(*address); !connected) return tl::unexpected(connected.error());
    if (auto sent = send_address(socket->get(), **pair); !sent) return tl::unexpected(sent.error());
    return make_verbs_receiver(transport_, rail, std::move(*pair), info_.members[info_.self], info_.members[member]);
  }

 private:
  [[nodiscard]] std::uint32_t connections() const { return std::max(1U, transport_.options().connections); }
  [[nodiscard]] std::uint32_t rails_of(std::uint32_t member) const {
    return transport_.rails_of(info_.members[member]);
  }

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
      targets_(peers_.size()),
      peer_rails_(peers_.size()) {}

RailDevices VerbsTransport::choose_devices() const {
  const std::uint32_t rank = control_.rank();
  if (!options_.devices.empty()) return {.names = options_.devices[rank % options_.devices.size()]};
  if (rank >= options_.nics.size()) return {.names = {""}};
  return match_rails(options_.nics[rank], VerbsDevice::list_ports(), options_.port);
}

std::uint32_t VerbsTransport::rail_of(std::uint32_t rank, std::uint32_t named) const {
  const PeerRails& rails = peer_rails_[rank];
  return rails.of_nics.empty() ? named % rails.count : rails.of_nics[named % rails.of_nics.size()];
}

Result<std::string> VerbsTransport::open(Device&) {
  RailDevices chosen = choose_devices();
  for (const std::string& name : chosen.names) {
    auto device = VerbsDevice::open(name, options_, static_cast<std::uint32_t>(rails_.size()));
    if (!device) return tl::unexpected(device.error());
    for (const auto& other : rails_) {
      if (other->name() != (*device)->name()) continue;
      return fail(ErrorCode::invalid_input, fmt::format("two rails of this rank are {}", other->name()),
                  "name another device or port for one of them, such as mlx4_0:1+mlx4_0:2");
    }
    rails_.push_back(std::move(*device));
  }
  why_these_ = std::move(chosen.reason);
  PeerRails& own = peer_rails_[control_.rank()];
  own = {static_cast<std::uint32_t>(rails_.size()), std::move(chosen.rail_of_nic)};
  auto sockets = SocketWaiter::create(control_.failure_fd());
  if (!sockets) return tl::unexpected(sockets.error());
  sockets_.emplace(std::move(*sockets));
  for (const auto& rail : rails_) {
    for (const int fd : {rail->completions_fd(), rail->events_fd()}) {
      if (auto watched = sockets_->watch(fd); !watched) return tl::unexpected(watched.error());
    }
  }
  auto mesh =
      TcpMesh::create(rendezvous::share_network(peers_) ? control_.local_address() : "", secret_, control_.rank());
  if (!mesh) return tl::unexpected(mesh.error());
  mesh_ = std::move(*mesh);
  return fmt::format("{} {} {}", mesh_->port(), own.count, fmt::join(own.of_nics, " "));
}

Result<Reach> VerbsTransport::attach(std::uint32_t rank, std::string_view exported) {
  PeerRails& rails = peer_rails_[rank];
  rails.of_nics.clear();
  const char* const end = exported.data() + exported.size();
  const char* at = std::from_chars(exported.data(), end, targets_[rank].port).ptr;
  if (at != end) at = std::from_chars(at + 1, end, rails.count).ptr;
  for (std::uint32_t rail = 0; at != end; rails.of_nics.push_back(rail)) {
    const auto [behind, error] = std::from_chars(at + 1, end, rail);
    if (error != std::errc()) break;
    at = behind;
  }
  if (rails.count == 0) return fail(ErrorCode::unavailable, fmt::format("rank {} has no RDMA device", rank));
  if (std::ranges::any_of(rails.of_nics, [&](std::uint32_t rail) { return rail >= rails.count; })) {
    return fail(ErrorCode::unavailable, fmt::format("rank {} names a rail that it has not", rank));
  }
  targets_[rank].addresses = rendezvous::addresses_towards(peers_[control_.rank()], peers_[rank]);
  targets_[rank].rank = rank;
  std::string names;
  for (const auto& rail : rails_) names += (names.empty() ? "" : " and ") + rail->name();
  return Reach{fmt::format("verbs was asked for; {} {}{}",
                           rails_.size() == 1 ? "this rank's device is" : "this rank has", names,
                           why_these_.empty() ? "" : ": " + why_these_)};
}

Result<std::unique_ptr<GroupTransport>> VerbsTransport::join(const GroupInfo& group) {
  return std::make_unique<VerbsGroup>(*this, group);
}

Result<std::unique_ptr<Registration>> VerbsTransport::register_memory(void* data, std::int64_t bytes, MemorySpace space,
                                                                      Device& device) {
  if (rails_.empty()) return nullptr;
  if (space == MemorySpace::device) return VerbsRegistration::of_device(rails_, device, data, bytes);
  return VerbsRegistration::create(rails_, data, bytes);
}

bool VerbsTransport::arm() {
  disarm();  // A notice that nobody took would hide the next.
  for (const auto& rail : rails_) rail->arm();
  return true;
}

}  // namespace espalier::engine
