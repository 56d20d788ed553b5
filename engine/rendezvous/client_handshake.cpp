#include "engine/rendezvous/client_handshake.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include "engine/rendezvous/names.h"
#include "engine/rendezvous/wire/addresses.h"
#include "engine/rendezvous/wire/messages.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Time = steady_clock::time_point;

/// A refused rank is tried again for so long: the hub may not yet have seen that its former holder is gone.
constexpr milliseconds patience_for_taken_ranks{500};

/// Where somebody listened and nobody does, rank 0 has died. Its port may refuse for a moment when many connect.
constexpr milliseconds patience_for_gone_hubs{2000};

/// Why an attempt did not succeed, and whether another one could.
struct Setback {
  Error error;
  bool is_final = false;
  bool is_taken_rank = false;
  bool is_nobody_there = false;
  bool is_turned_away = false;
};
template <class T>
using Attempt = tl::expected<T, Setback>;

tl::unexpected<Setback> setback(std::string message, bool is_final = false, std::string help = {}) {
  const ErrorCode code = is_final ? ErrorCode::invalid_input : ErrorCode::unavailable;
  return tl::unexpected(Setback{{code, std::move(message), std::move(help)}, is_final});
}

/// Whether the socket is ready before the time comes.
bool wait_ready(int fd, short events, Time deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000)));
    if (ready > 0) return true;
    if (left <= 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

/// A connected socket, or errno.
tl::expected<FileDescriptor, int> connect_to(const addrinfo& address, Time deadline) {
  FileDescriptor fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return tl::unexpected(errno);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS && errno != EINTR) return tl::unexpected(errno);
  if (!wait_ready(fd.get(), POLLOUT, deadline)) return tl::unexpected(ETIMEDOUT);
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return tl::unexpected(error);
  return fd;
}

/// Linux may connect a socket to itself when nobody listens on a port of the ephemeral range.
bool is_connected_to_itself(int fd) {
  sockaddr_storage near{};
  sockaddr_storage far{};
  socklen_t near_length = sizeof near;
  socklen_t far_length = sizeof far;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&near), &near_length) != 0) return false;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&far), &far_length) != 0) return false;
  const auto* near_bytes = reinterpret_cast<const char*>(&near);
  return near_length == far_length && std::equal(near_bytes, near_bytes + near_length, reinterpret_cast<char*>(&far));
}

Attempt<FileDescriptor> connect_to_any(const std::string& host, std::uint16_t port, Time deadline) {
  const auto addresses = resolve(host, port);
  if (!addresses) return tl::unexpected(Setback{addresses.error()});
  int error = 0;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    auto fd = connect_to(*address, deadline);
    if (fd && !is_connected_to_itself(fd->get())) return std::move(*fd);
    error = fd ? ECONNREFUSED : fd.error();
  }
  auto failed = setback(fmt::format("cannot connect to {}: {}", endpoint_text(host, port), errno_text(error)));
  failed.value().is_nobody_there = error == ECONNREFUSED;
  return failed;
}

Attempt<Frame> next_frame(FrameLink& link, const std::string& hub, Time deadline) {
  while (true) {
    auto frame = link.next();
    if (!frame) return setback(hub + " is no rendezvous: " + frame.error().message, true, "check host and port");
    if (*frame) return std::move(**frame);
    if (!wait_ready(link.fd(), POLLIN, deadline)) {
      return setback(hub + " accepted the connection, but says nothing", false, "see whether rank 0 is stopped");
    }
    if (!link.fill()) {
      frame = link.next();
      if (frame && *frame) return std::move(**frame);
      auto turned_away = setback(fmt::format("{} hung up during the greeting: {}", hub, link.end()));
      turned_away.value().is_turned_away = true;
      return turned_away;
    }
  }
}

Setback refused(const EntryRefusal& refusal, const std::string& hub) {
  Setback setback{{ErrorCode::invalid_input, fmt::format("{} refuses: {}", hub, refusal.text), {}}, true};
  switch (refusal.kind) {
    case RefusalKind::wrong_secret:
      setback.error.help = "give all ranks the same ESPALIER_SECRET or ESPALIER_SECRET_FILE";
      break;
    case RefusalKind::other_job:
      setback.is_final = false;  // It may be the job before, about to end.
      setback.error.help = "give each job a port of its own";
      break;
    case RefusalKind::closing: setback.is_final = false; break;
    case RefusalKind::rank_taken: setback.is_taken_rank = true; break;
    case RefusalKind::wrong_version: setback.error.help = "run the same version on all ranks"; break;
    case RefusalKind::other_world:
    case RefusalKind::rank_out_of_range: setback.error.help = "look at what the launcher told each rank"; break;
  }
  return setback;
}

Attempt<HubConnection> try_handshake(const Identity& identity, const std::string& host, std::uint16_t port,
                                     Time deadline) {
  const std::string hub = "the rendezvous at " + endpoint_text(host, port);
  auto fd = connect_to_any(host, port, deadline);
  if (!fd) return tl::unexpected(std::move(fd.error()));
  HubConnection connection{FrameLink(std::move(*fd), largest_greeting), {}};
  auto frame = next_frame(connection.link, hub, deadline);
  if (!frame) return tl::unexpected(std::move(frame.error()));
  const auto hello = decode_hello(frame->payload);
  if (frame->type != FrameType::hello || !hello) return setback(hub + " is none: something else listens there", true);
  const auto nonce = random_digest();
  if (!nonce) return tl::unexpected(Setback{nonce.error(), true});

  Claim claim{protocol_version, identity.rank, identity.world, identity.job, identity.name, *nonce, {}};
  claim.code = claim_code(identity.secret, hello->nonce, claim);
  connection.link.send(FrameType::claim, encode(claim));
  frame = next_frame(connection.link, hub, deadline);
  if (!frame) return tl::unexpected(std::move(frame.error()));
  if (frame->type == FrameType::refusal) {
    const auto refusal = decode_refusal(frame->payload);
    if (refusal) return tl::unexpected(refused(*refusal, hub));
  }
  const auto welcome = decode_welcome(frame->payload);
  if (frame->type != FrameType::welcome || !welcome) return setback(hub + " broke off the greeting", true);
  if (!equal_in_constant_time(welcome->code, welcome_code(identity.secret, hello->nonce, claim, welcome->name))) {
    return setback(hub + " does not know the secret", true, "another program may pose as rank 0: check host and port");
  }
  connection.hub_name = welcome->name;
  return connection;
}

}  // namespace

Result<HubConnection> connect_to_hub(const Identity& identity, const std::string& host, std::uint16_t port,
                                     Time deadline) {
  constexpr milliseconds longest_pause{100};
  /// A hub turns ranks away while unauthenticated connections from their address take every place; places become free
  /// at any time.
  constexpr milliseconds pause_when_turned_away{2};
  milliseconds pause{1};
  std::optional<Time> taken_since;
  std::optional<Time> gone_since;
  while (true) {
    const Time begin = steady_clock::now();
    auto attempt = try_handshake(identity, host, port, std::min(deadline, begin + identity.greeting_time()));
    if (attempt) return std::move(*attempt);
    Setback& setback = attempt.error();
    const Time now = steady_clock::now();
    if (setback.is_taken_rank) {
      if (!taken_since) taken_since = now;
      setback.is_final = now - *taken_since >= patience_for_taken_ranks;
    }
    if (!setback.is_nobody_there) gone_since.reset();
    if (setback.is_nobody_there && identity.was_listening) {
      if (!gone_since) gone_since = now;
      setback.is_final = now - *gone_since >= patience_for_gone_hubs;
      if (setback.is_final) setback.error.help = "rank 0 was there and is gone: see what became of it";
    }
    if (setback.is_turned_away) pause = std::min(pause, pause_when_turned_away);
    if (!setback.is_final && now + pause < deadline) {
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, longest_pause);
      continue;
    }
    if (!setback.is_final) {
      setback.error.message = fmt::format("rank {} could not join within {}: {}", identity.rank,
                                          duration_text(identity.timeout), setback.error.message);
    }
    return tl::unexpected(std::move(setback.error));
  }
}

}  // namespace espalier::engine::rendezvous
