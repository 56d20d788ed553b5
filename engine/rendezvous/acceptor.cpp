#include "engine/rendezvous/acceptor.h"

#include <fmt/format.h>

#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {

Acceptor::Acceptor(Poller& poller, const Identity& identity, AdmissionCheck admission_check)
    : poller_(poller),
      identity_(identity),
      admission_check_(std::move(admission_check)),
      pending_(poller, pending_places_for(identity.world), identity.greeting_time()) {}

std::optional<Acceptor::Authenticated> Acceptor::handle(std::uint64_t token, Time now) {
  if (token != PendingConnections<Pending>::listener_token) return receive(token);
  pending_.accept(now, greet);
  return std::nullopt;
}

std::optional<Acceptor::Pending> Acceptor::greet(FileDescriptor fd) {
  const auto nonce = random_digest();
  if (!nonce) return std::nullopt;
  Pending pending{FrameLink(std::move(fd), largest_greeting), *nonce, false};
  pending.link.send(FrameType::hello, encode(Hello{protocol_version, *nonce}));
  return pending;
}

std::optional<EntryRefusal> Acceptor::check(const Claim& claim, const Digest& nonce) const {
  if (claim.version != protocol_version) {
    return EntryRefusal{
        RefusalKind::wrong_version,
        fmt::format("the hub speaks version {} of the rendezvous, the newcomer {}", protocol_version, claim.version)};
  }
  if (!equal_in_constant_time(claim.code, claim_code(identity_.secret, nonce, claim))) {
    return EntryRefusal{RefusalKind::wrong_secret, "its secret is another one than the job's"};
  }
  return admission_check_(claim);
}

void Acceptor::refuse(std::uint64_t token, Pending& pending, const EntryRefusal& refusal) {
  last_refusal_ = fmt::format("{}: {}", socket_address(pending.fd(), SocketEnd::far), refusal.text);
  pending.link.send(FrameType::refusal, encode(refusal));
  pending.link.finish_sending();
  pending.is_refused = true;
  // Closing now would reset the connection if more has come, and the refusal might be lost with it.
  if (!poller_.watch_end(pending.fd(), token)) pending_.drop(token);
}

std::optional<Acceptor::Authenticated> Acceptor::receive(std::uint64_t token) {
  Pending* pending = pending_.find(token);
  if (pending == nullptr) return std::nullopt;
  if (pending->is_refused) {  // It has ended: nothing else is watched.
    pending_.drop(token);
    return std::nullopt;
  }
  FrameLink& link = pending->link;
  const bool is_open = link.fill(frame_header_size + largest_greeting - link.buffered());
  const auto frame = link.next();
  const bool is_claim = frame && *frame && (*frame)->type == FrameType::claim;
  const auto claim = is_claim ? decode_claim((*frame)->payload) : Result<Claim>();
  const bool is_garbage = !frame || (*frame && (!is_claim || !claim));
  if (is_garbage) {
    last_refusal_ = socket_address(link.fd(), SocketEnd::far) + ": it does not speak the rendezvous' protocol";
  }
  if (!is_open || is_garbage) {
    pending_.drop(token);
    return std::nullopt;
  }
  if (!is_claim) return std::nullopt;
  if (const auto refusal = check(*claim, pending->nonce)) {
    refuse(token, *pending, *refusal);
    return std::nullopt;
  }
  Pending proved = pending_.take(token);
  return Authenticated{*claim, proved.nonce, std::move(proved.link)};
}

}  // namespace espalier::engine::rendezvous
