#include "engine/rendezvous/hub.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/rendezvous/background_thread.h"
#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {

using std::chrono::steady_clock;

namespace {

/// As its copy constructor, but for a lack of memory: tl::expected's ends the process then.
Blobs copy_of(const Blobs& blobs) {
  if (blobs) return std::vector<std::string>(*blobs);
  return tl::unexpected(Error(blobs.error()));
}

}  // namespace

Hub::Hub(PlaneState& state, Identity identity)
    : state_(state),
      identity_(std::move(identity)),
      acceptor_(poller_, identity_, [this](const Claim& claim) { return check_admission(claim); }),
      members_(identity_.world),
      table_(identity_.world),
      next_heartbeat_(steady_clock::now() + identity_.heartbeat_interval()),
      last_tick_(steady_clock::now()),
      lack_of_memory_{0, fmt::format("its memory ran out ({})", identity_.name)} {}

Result<std::unique_ptr<Hub>> Hub::start(PlaneState& state, Identity identity, Listener listener) {
  std::unique_ptr<Hub> hub(new Hub(state, std::move(identity)));
  if (auto opened = hub->poller_.open(); !opened) return tl::unexpected(opened.error());
  if (listener.fd.is_open()) {
    if (auto opened = hub->acceptor_.open(std::move(listener)); !opened) return tl::unexpected(opened.error());
  }
  auto thread = start_background_thread([raw = hub.get()] { raw->loop(); });
  if (!thread) return tl::unexpected(thread.error());
  hub->thread_ = std::move(*thread);
  if (hub->identity_.world == 1) state.complete();
  return hub;
}

Hub::~Hub() { leave(); }

void Hub::loop() {
  while (true) {
    Time until;
    {
      const std::lock_guard lock(mutex_);
      until = next_time();
    }
    const auto events = poller_.wait(until);
    const std::lock_guard lock(mutex_);
    const Time now = steady_clock::now();
    for (const Poller::Event& event : events) handle(event, now);
    if (!has_memory_for([&] { tick(now); })) fail_for_memory();
    if (is_over(now)) return;
  }
}

void Hub::handle(const Poller::Event& event, Time now) {
  std::optional<Acceptor::Authenticated> authenticated;
  if (event.token >= Acceptor::first_token) {
    // Pending connections go first when memory is short: their ranks connect again by themselves.
    if (!has_memory_for([&] { authenticated = acceptor_.handle(event.token, now); })) return acceptor_.clear();
    if (!authenticated) return;
  }
  const bool is_served = has_memory_for([&] {
    if (authenticated) return welcome(std::move(*authenticated), now);
    const auto rank = static_cast<std::uint32_t>(event.token);
    if (event.can_write) members_[rank].link.flush();
    if (event.can_read) receive(rank, now);
    after_sending(rank);
  });
  if (!is_served) fail_for_memory();
}

void Hub::fail_for_memory() {
  acceptor_.close();
  const bool is_told = has_memory_for([this] {
    const RankFailure failure = lack_of_memory_;
    if (state_.fail(failure)) broadcast(failure);
  });
  if (is_told) return;
  // No memory even for that: the members see their connections end.
  for (Member& member : members_) {
    if (!member.link.is_open()) continue;
    poller_.forget(member.link.fd());
    member.link.close();
    member.has_left = true;
  }
  state_.fail(std::move(lack_of_memory_));
}

Hub::Time Hub::next_time() const {
  Time next = next_heartbeat_;
  if (const auto deadline = acceptor_.next_deadline()) next = std::min(next, *deadline);
  if (const auto deadline = table_.next_deadline()) next = std::min(next, *deadline);
  if (closing_until_) next = std::min(next, *closing_until_);
  return next;
}

void Hub::tick(Time now) {
  acceptor_.expire(now);
  // While this process was stopped itself the others may have been, too: nobody is late for that.
  const bool was_away = now - last_tick_ > 3 * identity_.heartbeat_interval();
  if (was_away) table_.postpone(now - last_tick_);
  answer(table_.expire(now));
  if (now >= next_heartbeat_) {
    check_silence(now, was_away);
    for (std::uint32_t rank = 1; rank < identity_.world; ++rank) {
      Member& member = members_[rank];
      // Unsent bytes do as a heartbeat, and heartbeats must not pile up for a peer that reads nothing.
      if (member.link.is_open() && !member.is_finished && !member.link.has_unsent())
        member.link.send(FrameType::heartbeat);
      after_sending(rank);
    }
    next_heartbeat_ = now + identity_.heartbeat_interval();
  }
  last_tick_ = now;
}

bool Hub::is_over(Time now) const {
  if (!closing_until_) return false;
  const bool all_gone = std::ranges::none_of(members_, [](const Member& member) { return member.link.is_open(); });
  return all_gone || now >= *closing_until_;
}

/// A process that was stopped itself must read what the others sent before it counts them as silent.
void Hub::check_silence(Time now, bool was_away) {
  for (std::uint32_t rank = 1; rank < identity_.world && !closing_until_; ++rank) {
    Member& member = members_[rank];
    if (!member.link.is_open() || member.has_left) continue;
    if (was_away) member.last_received = now;
    if (now - member.last_received <= identity_.timeout) continue;
    fail(rank, fmt::format("it has been silent for {}: it is stopped, or its host is cut off",
                           duration_text(identity_.timeout)));
  }
}

std::optional<EntryRefusal> Hub::check_admission(const Claim& claim) const {
  if (claim.job != identity_.job) {
    return EntryRefusal{RefusalKind::other_job,
                        fmt::format("this is the rendezvous of job '{}', not of '{}'", identity_.job, claim.job)};
  }
  if (claim.world != identity_.world) {
    return EntryRefusal{RefusalKind::other_world,
                        fmt::format("the job has {} ranks, but rank {} was told that it has {}", identity_.world,
                                    claim.rank, claim.world)};
  }
  if (claim.rank == 0 || claim.rank >= identity_.world) {
    return EntryRefusal{claim.rank == 0 ? RefusalKind::rank_taken : RefusalKind::rank_out_of_range,
                        claim.rank == 0 ? "rank 0 is the rendezvous itself: two processes were given rank 0"
                                        : fmt::format("rank {} is not below {}", claim.rank, identity_.world)};
  }
  const Member& taken = members_[claim.rank];
  if (taken.has_left || closing_until_ || state_.has_failed()) {
    return EntryRefusal{RefusalKind::closing, "the job is ending"};
  }
  if (taken.has_joined) {
    return EntryRefusal{
        RefusalKind::rank_taken,
        fmt::format("rank {} is {} already: two processes were given this rank", claim.rank, taken.name)};
  }
  return std::nullopt;
}

void Hub::welcome(Acceptor::Authenticated authenticated, Time now) {
  const std::uint32_t rank = authenticated.claim.rank;
  Member& member = members_[rank];
  member.link = std::move(authenticated.link);
  member.link.set_largest_payload(largest_blob + longest_tag + sizeof(std::uint32_t) * identity_.world +
                                  largest_greeting);
  member.name = authenticated.claim.name;
  member.last_received = now;
  member.has_joined = true;
  poller_.watch(member.link.fd(), rank, false);
  const Digest code = welcome_code(identity_.secret, authenticated.nonce, authenticated.claim, identity_.name);
  member.link.send(FrameType::welcome, encode(Welcome{identity_.name, code}));
  if (++joined_ == identity_.world) {
    for (std::uint32_t each = 1; each < identity_.world; ++each) {
      members_[each].link.send(FrameType::complete);
      after_sending(each);
    }
    state_.complete();
  }
  receive(rank, now);
  after_sending(rank);
}

void Hub::receive(std::uint32_t rank, Time now) {
  Member& member = members_[rank];
  if (!member.link.is_open()) return;
  const bool is_open = member.link.fill();
  member.last_received = now;
  while (member.link.is_open()) {
    const auto frame = member.link.next();
    if (!frame) {
      fail(rank, "it sent what is no message: " + frame.error().message);
      member.has_left = true;
      drop(rank);
      return;
    }
    if (!*frame) break;
    handle(rank, **frame);
  }
  if (!is_open) drop(rank);
}

void Hub::handle(std::uint32_t rank, const Frame& frame) {
  Member& member = members_[rank];
  switch (frame.type) {
    case FrameType::put: {
      auto put = decode_put(frame.payload);
      if (!put) return fail(rank, "it sent a " + put.error().message);
      if (auto done = table_.put(rank, std::move(*put), steady_clock::now())) answer({std::move(*done)});
      return;
    }
    case FrameType::ping: {
      auto ping = decode_ping(frame.payload);
      if (!ping) return fail(rank, "it sent a " + ping.error().message);
      ping->time_ns = monotonic_ns();
      member.link.send(FrameType::pong, encode(*ping));
      return;
    }
    case FrameType::failure: {
      const auto notice = decode_failure(frame.payload);
      if (!notice || notice->rank >= identity_.world) return fail(rank, "it sent a malformed frame: failure");
      const RankFailure failure{notice->rank, notice->reason};
      if (state_.fail(failure)) broadcast(failure);
      return;
    }
    case FrameType::goodbye: return handle_goodbye(rank);
    case FrameType::heartbeat: return;
    default: return fail(rank, "it sent a message that a member never sends");
  }
}

void Hub::handle_goodbye(std::uint32_t rank) {
  members_[rank].has_left = true;
  if (joined_ < identity_.world) fail(rank, "it gave up before all ranks had joined");
  answer(table_.leave(rank));
}

void Hub::drop(std::uint32_t rank) {
  Member& member = members_[rank];
  if (!member.link.is_open()) return;
  const std::string how = member.link.end();
  poller_.forget(member.link.fd());
  member.link.close();
  if (member.has_left) return;
  member.has_left = true;
  fail(rank, how + " without goodbye: it died or was killed");
}

void Hub::fail(std::uint32_t rank, const std::string& what) {
  const RankFailure failure{rank, fmt::format("{} ({})", what, members_[rank].name)};
  if (state_.fail(failure)) broadcast(failure);
}

void Hub::broadcast(const RankFailure& failure) {
  acceptor_.close();
  const std::string notice = encode(FailureNotice{failure.rank, failure.reason});
  for (std::uint32_t rank = 1; rank < identity_.world; ++rank) {
    Member& member = members_[rank];
    if (!member.link.is_open() || member.is_finished) continue;
    member.link.send(FrameType::failure, notice);
    after_sending(rank);
  }
}

void Hub::after_sending(std::uint32_t rank) {
  Member& member = members_[rank];
  if (!member.link.is_open()) return;
  const bool has_unsent = member.link.has_unsent();
  if (has_unsent != member.is_written) {
    poller_.watch(member.link.fd(), rank, has_unsent);
    member.is_written = has_unsent;
  }
  if (closing_until_ && !has_unsent && !member.is_finished) {
    member.link.finish_sending();
    member.is_finished = true;
  }
}

void Hub::answer(const std::vector<ExchangeTable::Answer>& answers) {
  for (const ExchangeTable::Answer& answer : answers) {
    std::shared_ptr<const std::string> body;
    for (const auto& [rank, id] : answer.to) {
      if (rank == 0) {
        state_.deliver(id, copy_of(*answer.blobs));
        continue;
      }
      if (!body) body = std::make_shared<const std::string>(encode_gathered_body(*answer.blobs));
      if (!members_[rank].link.is_open()) continue;
      members_[rank].link.send(FrameType::gathered, encode_gathered_id(id), body);
      after_sending(rank);
    }
  }
}

void Hub::put(Put put) {
  const std::lock_guard lock(mutex_);
  const Time now = steady_clock::now();
  const auto before = table_.next_deadline();
  if (auto done = table_.put(0, std::move(put), now)) answer({std::move(*done)});
  if (table_.next_deadline() != before) poller_.wake();
}

void Hub::report(const RankFailure& failure) {
  const std::lock_guard lock(mutex_);
  broadcast(failure);
}

std::vector<std::uint32_t> Hub::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 1; rank < identity_.world; ++rank) {
    if (!members_[rank].has_joined) ranks.push_back(rank);
  }
  return ranks;
}

std::string Hub::last_refusal() const {
  const std::lock_guard lock(mutex_);
  return acceptor_.last_refusal();
}

std::string Hub::local_address() const {
  const std::lock_guard lock(mutex_);
  for (const Member& member : members_) {
    if (member.link.is_open()) return socket_address(member.link.fd(), SocketEnd::near);
  }
  return {};
}

void Hub::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (!closing_until_) {
      closing_until_ = steady_clock::now() + farewell_time;
      acceptor_.close();
      for (std::uint32_t rank = 1; rank < identity_.world; ++rank) {
        if (!members_[rank].link.is_open()) continue;
        members_[rank].link.send(FrameType::goodbye);
        after_sending(rank);
      }
    }
  }
  poller_.wake();
  if (thread_.joinable()) thread_.join();
}

}  // namespace espalier::engine::rendezvous
