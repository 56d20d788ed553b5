#include "engine/rendezvous/wire/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "engine/rendezvous/names.h"
#include "engine/rendezvous/wire/addresses.h"

namespace espalier::engine::rendezvous {
namespace {

/// A loopback address that the user did not ask for: "127.0.1.1 myhost" in /etc/hosts would shut all others out.
bool is_unwanted_loopback(const std::string& host, const addrinfo& address) {
  if (!is_loopback(address)) return false;
  addrinfo numeric{};
  numeric.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const bool is_numeric = getaddrinfo(host.c_str(), nullptr, &numeric, &found) == 0;
  if (found != nullptr) freeaddrinfo(found);
  return !is_numeric && host != "localhost" && !host.starts_with("localhost.") && !host.starts_with("ip6-l");
}

/// A socket that listens there, or errno.
tl::expected<FileDescriptor, int> try_listen(const addrinfo& address) {
  FileDescriptor fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return tl::unexpected(errno);
  const int on = 1;
  const int off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // All addresses in IPv6 means those of IPv4 too.
  if (address.ai_family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) return tl::unexpected(errno);
  if (::listen(fd.get(), SOMAXCONN) != 0) return tl::unexpected(errno);
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
                                       : std::uint16_t{0};
}

/// Errors of the connection, not of the listener (accept(2)): the next one may be fine.
bool is_of_the_connection(int error) {
  return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN ||
         error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == EOPNOTSUPP;
}

/// Whoever has one IPv6 address has all of its network, which is 64 bits.
std::string source_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& host = reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
    return {reinterpret_cast<const char*>(&host), sizeof host};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& host = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&host);
  return IN6_IS_ADDR_V4MAPPED(&host) ? std::string(bytes + 12, 4) : std::string(bytes, 8);
}

tl::expected<FileDescriptor, int> try_listen_on_all(std::uint16_t port) {
  int error = EAFNOSUPPORT;
  for (const char* any : {"::", "0.0.0.0"}) {
    const auto addresses = resolve(any, port);
    if (!addresses) continue;
    auto fd = try_listen(**addresses);
    if (fd) return fd;
    error = fd.error();
    if (error == EADDRINUSE) break;
  }
  return tl::unexpected(error);
}

/// The first address that can be listened at, or errno.
tl::expected<Listener, int> listen_at_any(const addrinfo* addresses, const std::string& host, std::uint16_t port) {
  int error = EADDRNOTAVAIL;
  bool is_elsewhere = false;
  const auto named = [](FileDescriptor fd) {
    const std::uint16_t got = port_of(fd.get());
    return Listener{std::move(fd), got, false};
  };
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
    if (is_unwanted_loopback(host, *address)) {
      is_elsewhere = true;
      continue;
    }
    auto fd = try_listen(*address);
    if (fd) return named(std::move(*fd));
    error = fd.error();
    is_elsewhere |= error == EADDRNOTAVAIL;
  }
  if (is_elsewhere && error == EADDRNOTAVAIL) {
    auto fd = try_listen_on_all(port);
    if (fd) {
      Listener listener = named(std::move(*fd));
      listener.is_everywhere = true;
      return listener;
    }
    error = fd.error();
  }
  return tl::unexpected(error);
}

}  // namespace

Result<Listener> listen_on(const std::string& host, std::uint16_t port, std::chrono::milliseconds patience) {
  const auto addresses = resolve(host, port);
  if (!addresses) return tl::unexpected(addresses.error());
  const auto until = std::chrono::steady_clock::now() + patience;
  auto listener = listen_at_any(addresses->get(), host, port);
  while (!listener && listener.error() == EADDRINUSE && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    listener = listen_at_any(addresses->get(), host, port);
  }
  if (listener) return std::move(*listener);
  const int error = listener.error();
  return fail(ErrorCode::unavailable,
              fmt::format("cannot listen on {}: {}", endpoint_text(host, port), errno_text(error)),
              error == EADDRINUSE ? "another job or service has this port: choose another one for --rendezvous" : "");
}

Result<Listener> listen_on_all(std::uint16_t port) {
  auto fd = try_listen_on_all(port);
  if (!fd) return fail(ErrorCode::unavailable, "cannot listen on all addresses: " + errno_text(fd.error()));
  const std::uint16_t got = port_of(fd->get());
  return Listener{std::move(*fd), got, false};
}

Accepted accept_from(int listener) {
  constexpr int max_broken = 64;
  for (int i = 0; i < max_broken; ++i) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return {FileDescriptor(fd), source_of(address), 0};
    if (!is_of_the_connection(errno)) return {{}, {}, errno};
  }
  return {{}, {}, EAGAIN};
}

Result<Listener> adopt_listener(int fd, std::uint16_t port) {
  int is_listening = 0;
  socklen_t length = sizeof is_listening;
  const bool is_socket = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) == 0;
  if (!is_socket || is_listening == 0 || port == 0 || port_of(fd) != port) {
    return fail(ErrorCode::invalid_input,
                fmt::format("file descriptor {} is no TCP socket that listens on port {}", fd, port),
                "ESPALIER_LISTENER_FD is for the ranks that espalier starts itself; unset it");
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Listener{FileDescriptor(fd), port, false};
}

}  // namespace espalier::engine::rendezvous
