#include "engine/communicator/prepared_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/fnv.h"

namespace espalier::engine {

std::uint32_t StreamTable::choose_stream(const Schedule& schedule, const Transfer& transfer) const {
  const std::uint32_t src = schedule.src(transfer).value();
  const std::uint32_t peer = src == self_ ? schedule.dst(transfer).value() : src;
  if (shm_peers_[peer] != nullptr) return transfer.action() == Action::reduce ? 0 : 1;
  if (!job_.options().routes.empty()) return transfer.route.value();
  return transfer.first_slice.value() % std::max(1U, job_.options().sockets_per_peer);
}

Result<std::vector<StreamEnds>> StreamTable::connect(const RankProgram& program) {
  const auto deadline = std::chrono::steady_clock::now() + job_.options().timeout;
  // First all connections out: the other ends accept at any time, so nobody waits in a circle.
  for (const bool outgoing : {true, false}) {
    for (const Stream& stream : program.streams) {
      if (stream.is_outgoing != outgoing) continue;
      const Key key{outgoing, stream.peer.value(), stream.number};
      if (ends_.contains(key)) continue;
      const auto made = outgoing ? make_sender(key, deadline) : make_receiver(key, deadline);
      if (!made) {
        return fail(made.error().code,
                    fmt::format("no connection {} rank {}: {}", outgoing ? "to" : "from", members_[key.member],
                                made.error().message),
                    made.error().help);
      }
    }
  }
  std::vector<StreamEnds> found;
  for (const Stream& stream : program.streams) {
    const Ends& ends = ends_.at({stream.is_outgoing, stream.peer.value(), stream.number});
    found.push_back({ends.sender.get(), ends.receiver.get()});
  }
  return found;
}

void StreamTable::settle() {
  const auto deadline = std::chrono::steady_clock::now() + job_.options().timeout;
  for (const auto& [key, ends] : ends_) {
    while (ends.sender && !ends.sender->is_settled()) {
      if (job_.control().has_failed() || job_.is_aborted() || std::chrono::steady_clock::now() > deadline) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

Result<void> StreamTable::make_sender(const Key& key, std::chrono::steady_clock::time_point deadline) {
  if (ShmPeer* peer = shm_peer(key.member)) {
    ends_[key].sender = make_shm_sender(*peer, key.stream);
    return {};
  }
  TcpMesh::Target target = job_.target_of(members_[key.member]);
  const std::vector<RouteAddress>& routes = job_.options().routes;
  if (!routes.empty()) {
    const auto route = std::ranges::find(routes, key.stream, &RouteAddress::route);
    if (route == routes.end()) {
      return fail(ErrorCode::invalid_input, fmt::format("the address file has no route {}", key.stream));
    }
    target.address = route->connect;
    target.bind = route->bind;
  }
  auto socket = job_.mesh()->connect({communicator_, job_.rank(), key.stream}, target, deadline, job_.control());
  if (!socket) return tl::unexpected(socket.error());
  if (auto watched = job_.sockets().watch(socket->get()); !watched) return watched;
  ends_[key].sender = make_tcp_sender(std::move(*socket), members_[key.member], {job_.options().checksum});
  return {};
}

Result<void> StreamTable::make_receiver(const Key& key, std::chrono::steady_clock::time_point deadline) {
  if (ShmPeer* peer = shm_peer(key.member)) {
    ends_[key].receiver = make_shm_receiver(*peer, key.stream);
    return {};
  }
  auto socket = job_.mesh()->accept({communicator_, members_[key.member], key.stream}, deadline, job_.control());
  if (!socket) return tl::unexpected(socket.error());
  if (auto watched = job_.sockets().watch(socket->get()); !watched) return watched;
  ends_[key].receiver = make_tcp_receiver(std::move(*socket), job_.rank(), members_[key.member]);
  return {};
}

std::uint64_t hash_of(const Schedule& schedule) {
  Fnv1a hash;
  hash.add_number(static_cast<std::uint64_t>(schedule.collective.kind));
  hash.add_number(schedule.collective.rank_count);
  hash.add_number(schedule.collective.root.value());
  hash.add_number(static_cast<std::uint64_t>(schedule.units));
  for (const std::int64_t share : schedule.collective.shares) hash.add_number(static_cast<std::uint64_t>(share));
  for (const Slice& slice : schedule.slices) {
    hash.add_number(static_cast<std::uint64_t>(slice.length));
    hash.add_number(std::uint64_t{slice.rank.value()} << 32U | slice.to.value());
  }
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(static_cast<std::uint32_t>(i)));
    hash.add_number(std::uint64_t{route.src.value()} << 32U | route.dst.value());
    hash.add_number(route.links.size());
    for (const LinkId link : route.links) hash.add_number(link.value());
  }
  for (const Transfer& transfer : schedule.transfers) {
    hash.add_number(std::uint64_t{transfer.first_slice.value()} << 32U | transfer.slice_count);
    hash.add_number(std::uint64_t{transfer.route.value()} << 32U | std::uint64_t{transfer.channel_value} << 1U |
                    (transfer.reduces != 0 ? 1U : 0U));
  }
  return hash.value();
}

}  // namespace espalier::engine
