#include "engine/rendezvous/door.h"

#include <fmt/format.h>

#include "engine/rendezvous/names.h"

namespace espalier {

Door::Door(Poller& poller, const Identity& identity, Judge judge)
    : poller_(poller),
      identity_(identity),
      judge_(std::move(judge)),
      strangers_(poller, pending_places_for(identity.world), identity.greeting_time()) {}

std::optional<Door::Guest> Door::handle(std::uint64_t token, Time now) {
  if (token != PendingConnections<Stranger>::listener_token) return hear(token);
  strangers_.accept(now, greet);
  return std::nullopt;
}

std::optional<Door::Stranger> Door::greet(FileDescriptor fd) {
  const auto nonce = random_digest();
  if (!nonce) return std::nullopt;
  Stranger stranger{FrameLink(std::move(fd), largest_greeting), *nonce, false};
  stranger.link.send(FrameType::hello, encode(Hello{protocol_version, *nonce}));
  return stranger;
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

void Door::refuse(std::uint64_t token, Stranger& stranger, const EntryRefusal& refusal) {
  last_refusal_ = fmt::format("{}: {}", socket_address(stranger.fd(), SocketEnd::far), refusal.text);
  stranger.link.send(FrameType::refusal, encode(refusal));
  stranger.link.finish_sending();
  stranger.is_refused = true;
  // Closing now would reset the connection if more has come, and the refusal might be lost with it.
  if (!poller_.watch_end(stranger.fd(), token)) strangers_.drop(token);
}

std::optional<Door::Guest> Door::hear(std::uint64_t token) {
  Stranger* stranger = strangers_.find(token);
  if (stranger == nullptr) return std::nullopt;
  if (stranger->is_refused) {  // It has ended: nothing else is watched.
    strangers_.drop(token);
    return std::nullopt;
  }
  FrameLink& link = stranger->link;
  const bool is_open = link.fill(frame_header_size + largest_greeting - link.buffered());
  const auto frame = link.next();
  const bool is_claim = frame && *frame && (*frame)->type == FrameType::claim;
  const auto claim = is_claim ? decode_claim((*frame)->payload) : Result<Claim>();
  const bool is_garbage = !frame || (*frame && (!is_claim || !claim));
  if (is_garbage) {
    last_refusal_ = socket_address(link.fd(), SocketEnd::far) + ": it does not speak the rendezvous' protocol";
  }
  if (!is_open || is_garbage) {
    strangers_.drop(token);
    return std::nullopt;
  }
  if (!is_claim) return std::nullopt;
  if (const auto refusal = check(*claim, stranger->nonce)) {
    refuse(token, *stranger, *refusal);
    return std::nullopt;
  }
  Stranger proved = strangers_.take(token);
  return Guest{*claim, proved.nonce, std::move(proved.link)};
}

}  // namespace espalier
