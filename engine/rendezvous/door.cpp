#include "engine/rendezvous/door.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "engine/rendezvous/names.h"

namespace espalier {
namespace {

constexpr std::size_t fewest_places = 64;
constexpr int most_accepts_at_once = 64;
constexpr std::chrono::milliseconds deaf_time{50};

/// Errors of the connection, not of the listener (accept(2)): the next one may be fine.
bool is_of_the_connection(int error) {
  return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN ||
         error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == EOPNOTSUPP;
}

}  // namespace

Door::Door(Poller& poller, const Identity& identity, Judge judge)
    : poller_(poller), identity_(identity), judge_(std::move(judge)) {}

Result<void> Door::open(Listener listener) {
  listener_ = std::move(listener);
  if (poller_.watch(listener_.fd.get(), listener_token, false)) return {};
  return fail(ErrorCode::unavailable, "cannot watch the listening socket: " + errno_text(errno));
}

void Door::accept(Time now) {
  for (int i = 0; i < most_accepts_at_once && listener_.fd.is_open(); ++i) {
    FileDescriptor fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.is_open()) {
      greet(std::move(fd), now);
      continue;
    }
    if (is_of_the_connection(errno)) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    // Out of descriptors or memory: the socket would stay readable, so it is left alone for a while.
    poller_.forget(listener_.fd.get());
    deaf_until_ = now + deaf_time;
    return;
  }
}

void Door::greet(FileDescriptor fd, Time now) {
  const auto nonce = random_digest();
  if (!nonce) return;
  if (strangers_.size() >= fewest_places + identity_.world) drop(strangers_.begin());
  const std::uint64_t token = next_token_++;
  Stranger stranger{FrameLink(std::move(fd), largest_greeting), *nonce, now + identity_.greeting_time(), false};
  if (!poller_.watch(stranger.link.fd(), token, false)) return;
  stranger.link.send(FrameType::hello, encode(Hello{protocol_version, *nonce}));
  strangers_.emplace(token, std::move(stranger));
}

std::optional<EntryRefusal> Door::check(const Claim& claim, const Digest& nonce) const {
  if (claim.version != protocol_version) {
    return EntryRefusal{
        RefusalKind::wrong_version,
        fmt::format("the hub speaks version {} of the rendezvous, the newcomer {}", protocol_version, claim.version)};
  }
  if (!equal_in_constant_time(claim.code, claim_code(identity_.secret, nonce, claim))) {
    return EntryRefusal{RefusalKind::wrong_secret, "its secret is another one than the job's"};
  }
  return judge_(claim);
}

void Door::refuse(Stranger& stranger, const EntryRefusal& refusal) {
  last_refusal_ = fmt::format("{}: {}", socket_address(stranger.link.fd(), SocketEnd::far), refusal.text);
  stranger.link.send(FrameType::refusal, encode(refusal));
  stranger.link.finish_sending();
  stranger.is_refused = true;
}

std::optional<Door::Guest> Door::hear(std::uint64_t token) {
  const auto at = strangers_.find(token);
  if (at == strangers_.end()) return std::nullopt;
  Stranger& stranger = at->second;
  const bool is_open = stranger.link.fill();
  const auto frame = stranger.link.next();
  const bool is_claim = frame && *frame && (*frame)->type == FrameType::claim;
  const auto claim = is_claim ? decode_claim((*frame)->payload) : Result<Claim>();
  const bool is_garbage = !frame || (*frame && (!is_claim || !claim));
  if (is_garbage && !stranger.is_refused) {
    last_refusal_ = socket_address(stranger.link.fd(), SocketEnd::far) + ": it does not speak the rendezvous' protocol";
  }
  if (!is_open || is_garbage || stranger.is_refused) {
    if (!is_open || is_garbage) drop(at);
    return std::nullopt;
  }
  if (!is_claim) return std::nullopt;
  if (const auto refusal = check(*claim, stranger.nonce)) {
    refuse(stranger, *refusal);
    return std::nullopt;
  }
  Guest guest{*claim, stranger.nonce, std::move(stranger.link)};
  strangers_.erase(at);
  return guest;
}

void Door::drop(Strangers::iterator at) {
  poller_.forget(at->second.link.fd());
  strangers_.erase(at);
}

void Door::expire(Time now) {
  while (!strangers_.empty() && strangers_.begin()->second.deadline <= now) drop(strangers_.begin());
  if (deaf_until_ && *deaf_until_ <= now && listener_.fd.is_open()) {
    deaf_until_.reset();
    poller_.watch(listener_.fd.get(), listener_token, false);
  }
}

std::optional<Door::Time> Door::next_deadline() const {
  if (strangers_.empty()) return deaf_until_;
  const Time first = strangers_.begin()->second.deadline;
  return deaf_until_ ? std::min(*deaf_until_, first) : first;
}

void Door::close() {
  while (!strangers_.empty()) drop(strangers_.begin());
  if (!listener_.fd.is_open()) return;
  poller_.forget(listener_.fd.get());
  listener_.fd.reset();
  deaf_until_.reset();
}

}  // namespace espalier
