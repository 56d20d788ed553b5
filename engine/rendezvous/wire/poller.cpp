#include "engine/rendezvous/wire/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {
namespace {

constexpr std::uint64_t wake_token = std::numeric_limits<std::uint64_t>::max();

int milliseconds_until(std::optional<Poller::Time> until) {
  if (!until) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

Result<void> Poller::open() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (epoll_.is_open() && wake_.is_open() && watch(wake_.get(), wake_token, false)) return {};
  return fail(ErrorCode::unavailable, "cannot create an epoll instance: " + errno_text(errno),
              "raise the limit of open files (ulimit -n)");
}

bool Poller::watch(int fd, std::uint64_t token, bool for_writing) {
  return change(fd, token, EPOLLIN | (for_writing ? EPOLLOUT : 0U));
}

bool Poller::watch_end(int fd, std::uint64_t token) { return change(fd, token, EPOLLRDHUP); }

bool Poller::change(int fd, std::uint64_t token, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return true;
  return errno == ENOENT && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::forget(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Poller::wake() {
  const std::uint64_t one = 1;
  // A counter at its limit is awake already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

std::span<const Poller::Event> Poller::wait(std::optional<Time> until) {
  std::array<epoll_event, max_events> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), milliseconds_until(until));
  std::size_t seen = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    if (event.data.u64 == wake_token) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &ignored, sizeof ignored);
      continue;
    }
    events_[seen++] = {event.data.u64, (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0,
                       (event.events & EPOLLOUT) != 0};
  }
  return std::span(events_).first(seen);
}

}  // namespace espalier::engine::rendezvous
