#include "engine/rendezvous/member.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/rendezvous/background_thread.h"
#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {

using std::chrono::steady_clock;

namespace {
constexpr std::uint64_t link_token = 0;
}

Member::Member(PlaneState& state, Identity identity, HubConnection connection)
    : state_(state),
      identity_(std::move(identity)),
      hub_name_(std::move(connection.hub_name)),
      local_address_(socket_address(connection.link.fd(), SocketEnd::near)),
      hub_address_(socket_address(connection.link.fd(), SocketEnd::far)),
      link_(std::move(connection.link)),
      last_received_(steady_clock::now()),
      next_heartbeat_(last_received_ + identity_.heartbeat_interval()),
      last_tick_(last_received_),
      lack_of_memory_{identity_.rank, fmt::format("its memory ran out ({})", identity_.name)} {
  link_.set_largest_payload(largest_exchange + sizeof(std::uint32_t) * max_ranks + largest_greeting);
}

Result<std::unique_ptr<Member>> Member::start(PlaneState& state, Identity identity, HubConnection connection) {
  std::unique_ptr<Member> member(new Member(state, std::move(identity), std::move(connection)));
  if (auto opened = member->poller_.open(); !opened) return tl::unexpected(opened.error());
  if (!member->poller_.watch(member->link_.fd(), link_token, false)) {
    return fail(ErrorCode::unavailable, "cannot watch the connection to rank 0");
  }
  auto thread = start_background_thread([raw = member.get()] { raw->loop(); });
  if (!thread) return tl::unexpected(thread.error());
  member->thread_ = std::move(*thread);
  return member;
}

Member::~Member() { leave(); }

void Member::loop() {
  {
    // What came right behind the welcome is in the link's buffer, where epoll does not see it.
    const std::lock_guard lock(mutex_);
    if (!has_memory_for([this] { receive(steady_clock::now()); })) fail_for_memory();
  }
  while (true) {
    Time until;
    {
      const std::lock_guard lock(mutex_);
      until = closing_until_ ? std::min(next_heartbeat_, *closing_until_) : next_heartbeat_;
    }
    const auto events = poller_.wait(until);
    const std::lock_guard lock(mutex_);
    const Time now = steady_clock::now();
    const bool is_served = has_memory_for([&] {
      for (const Poller::Event& event : events) {
        if (event.can_write) link_.flush();
        if (event.can_read) receive(now);
        after_sending();
      }
      tick(now);
    });
    if (!is_served) fail_for_memory();
    if (!link_.is_open() || (closing_until_ && now >= *closing_until_)) return;
  }
}

void Member::fail_for_memory() {
  const bool is_told = has_memory_for([this] {
    const RankFailure failure = lack_of_memory_;
    if (state_.fail(failure)) send(FrameType::failure, encode(FailureNotice{failure.rank, failure.reason}));
  });
  if (is_told) return;
  // No memory even for that: the hub sees the connection end.
  poller_.forget(link_.fd());
  link_.close();
  state_.fail(std::move(lack_of_memory_));
}

void Member::tick(Time now) {
  if (now >= next_heartbeat_) {
    // A process that was stopped itself must read what the hub sent before it counts it as silent.
    if (now - last_tick_ > 3 * identity_.heartbeat_interval()) last_received_ = now;
    if (now - last_received_ > identity_.timeout) {
      fail_hub(fmt::format("it has been silent for {}: it is stopped, or its host is cut off",
                           duration_text(identity_.timeout)));
    }
    if (!link_.has_unsent()) send(FrameType::heartbeat);
    next_heartbeat_ = now + identity_.heartbeat_interval();
  }
  last_tick_ = now;
}

void Member::receive(Time now) {
  if (!link_.is_open()) return;
  const bool is_open = link_.fill();
  last_received_ = now;
  while (true) {
    const auto frame = link_.next();
    if (!frame) {
      fail_hub("it sent what is no message: " + frame.error().message);
      break;
    }
    if (!*frame) break;
    handle(**frame);
  }
  if (is_open) return;
  if (!hub_has_left_) fail_hub(link_.end() + " without goodbye: it died or was killed");
  poller_.forget(link_.fd());
  link_.close();
}

void Member::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::complete: return state_.complete();
    case FrameType::gathered: {
      auto gathered = decode_gathered(frame.payload);
      if (!gathered) return fail_hub("it sent a " + gathered.error().message);
      return state_.deliver(gathered->id, std::move(gathered->blobs));
    }
    case FrameType::pong: {
      const std::int64_t arrival_ns = monotonic_ns();
      const auto pong = decode_ping(frame.payload);
      if (!pong) return fail_hub("it sent a " + pong.error().message);
      return state_.deliver(pong->id, PlaneState::Pong{pong->time_ns, arrival_ns});
    }
    case FrameType::failure: {
      auto notice = decode_failure(frame.payload);
      if (!notice) return fail_hub("it sent a " + notice.error().message);
      state_.fail({notice->rank, std::move(notice->reason)});
      return finish();
    }
    case FrameType::goodbye:
      hub_has_left_ = true;
      state_.end("rank 0 has left the job");
      return finish();
    case FrameType::heartbeat: return;
    default: return fail_hub("it sent a message that rank 0 never sends to a member");
  }
}

void Member::finish() {
  // Nothing more is sent: ending this direction lets rank 0 go without waiting.
  if (!is_finished_) link_.finish_sending();
  is_finished_ = true;
}

void Member::fail_hub(const std::string& what) { state_.fail({0, fmt::format("{} ({})", what, hub_name_)}); }

void Member::send(FrameType type, std::string_view payload) {
  if (!link_.is_open() || is_finished_) return;
  link_.send(type, payload);
  after_sending();
}

void Member::after_sending() {
  if (!link_.is_open()) return;
  const bool has_unsent = link_.has_unsent();
  if (has_unsent != is_written_) {
    poller_.watch(link_.fd(), link_token, has_unsent);
    is_written_ = has_unsent;
  }
  if (closing_until_ && !has_unsent && !is_finished_) {
    link_.finish_sending();
    is_finished_ = true;
  }
}

void Member::put(const Put& put) {
  const std::lock_guard lock(mutex_);
  send(FrameType::put, encode(put));
}

void Member::ping(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  send(FrameType::ping, encode(Ping{id, 0}));
}

void Member::report(const RankFailure& failure) {
  const std::lock_guard lock(mutex_);
  send(FrameType::failure, encode(FailureNotice{failure.rank, failure.reason}));
}

std::string Member::local_address() const { return local_address_; }

std::string Member::hub_address() const { return hub_address_; }

void Member::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (!closing_until_) {
      send(FrameType::goodbye);
      closing_until_ = steady_clock::now() + farewell_time;
      after_sending();
    }
  }
  poller_.wake();
  if (thread_.joinable()) thread_.join();
}

}  // namespace espalier::engine::rendezvous
