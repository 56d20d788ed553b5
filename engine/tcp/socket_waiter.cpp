#include "engine/tcp/socket_waiter.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "base/error_text.h"

namespace espalier::engine {
namespace {

Result<void> add(int epoll, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return fail(ErrorCode::unavailable, fmt::format("cannot watch a socket: {}", error_text(errno)));
}

}  // namespace

Result<SocketWaiter> SocketWaiter::create(int also) {
  SocketWaiter waiter;
  waiter.epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!waiter.epoll_.is_open()) {
    return fail(ErrorCode::unavailable, fmt::format("cannot create an epoll instance: {}", error_text(errno)),
                "raise the number of open files (ulimit -n)");
  }
  if (also >= 0) {
    if (auto added = add(waiter.epoll_.get(), also, EPOLLIN); !added) return tl::unexpected(added.error());
  }
  return waiter;
}

Result<void> SocketWaiter::watch(int socket) {
  auto added = add(epoll_.get(), socket, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  watches_any_ |= added.has_value();
  return added;
}

void SocketWaiter::sleep(std::chrono::nanoseconds longest) {
  std::array<epoll_event, 64> events;
  const timespec limit{static_cast<time_t>(longest.count() / 1'000'000'000),
                       static_cast<long>(longest.count() % 1'000'000'000)};
  // By its number, as glibc has a function for it from 2.35 on alone.
  syscall(SYS_epoll_pwait2, epoll_.get(), events.data(), static_cast<int>(events.size()), &limit, nullptr,
          std::size_t{0});
}

}  // namespace espalier::engine
