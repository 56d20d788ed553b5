#include "engine/tcp/tcp_mesh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/rendezvous/addresses.h"
#include "engine/rendezvous/background_thread.h"
#include "engine/tcp/greeting.h"

namespace espalier::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds greeting_time{5000};
constexpr milliseconds look_interval{20};  ///< How often who waits looks whether the job still lives.
constexpr std::size_t most_strangers = 256;

std::string reason(int error) { return std::generic_category().message(error); }

void set_up(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// An accepted connection that has not proved what it is.
struct Stranger {
  FileDescriptor fd;
  Digest nonce{};
  std::string heard;
  Clock::time_point deadline;
};

/// Reads up to `size` bytes in all; false when the connection ended.
bool hear(int fd, std::string& heard, std::size_t size) {
  while (heard.size() < size) {
    std::array<char, 128> bytes;
    const ssize_t got = recv(fd, bytes.data(), std::min(bytes.size(), size - heard.size()), MSG_DONTWAIT);
    if (got > 0) {
      heard.append(bytes.data(), static_cast<std::size_t>(got));
    } else {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
  }
  return true;
}

/// The messages of a greeting fit any socket buffer: a short write is a broken connection.
bool say(int fd, std::string_view text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

Result<FileDescriptor> cannot_connect(int error, std::string_view what, ErrorCode code = ErrorCode::unavailable) {
  const bool lacks_files = error == EMFILE || error == ENFILE;
  return fail(code, fmt::format("{}: {}", what, reason(error)),
              lacks_files
                  ? "raise the number of open files (ulimit -n)"
                  : "see that no firewall is between the ranks, and that the address is that of the other machine");
}

/// A connected socket. Errors: unavailable when nobody answers there now, or the job failed; invalid_input and
/// too_large when trying again would not help.
Result<FileDescriptor> try_connect(const addrinfo& address, const addrinfo* near, milliseconds longest,
                                   const ControlPlane& control) {
  FileDescriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd.is_open()) return cannot_connect(errno, "cannot make a socket", ErrorCode::too_large);
  set_up(fd.get());
  if (near != nullptr && bind(fd.get(), near->ai_addr, near->ai_addrlen) != 0) {
    return cannot_connect(errno, "cannot use the near address", ErrorCode::invalid_input);
  }
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return cannot_connect(errno, "cannot connect");
  const auto deadline = Clock::now() + longest;
  pollfd waiting{fd.get(), POLLOUT, 0};
  while (poll(&waiting, 1, static_cast<int>(look_interval.count())) <= 0) {
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (Clock::now() > deadline) return cannot_connect(ETIMEDOUT, "cannot connect");
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return cannot_connect(error, "cannot connect");
  return fd;
}

/// Waits until `size` bytes came. Errors: unavailable when the connection ended or the time is up.
Result<std::string> await(int fd, std::size_t size, Clock::time_point deadline, const ControlPlane& control) {
  std::string heard;
  while (true) {
    if (!hear(fd, heard, size)) return fail(ErrorCode::unavailable, "the other end closed the connection");
    if (heard.size() == size) return heard;
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (Clock::now() > deadline) return fail(ErrorCode::unavailable, "the other end did not answer in time");
    pollfd waiting{fd, POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(look_interval.count()));
  }
}

}  // namespace

Result<std::unique_ptr<TcpMesh>> TcpMesh::create(const std::string& address, std::string secret) {
  std::unique_ptr<TcpMesh> mesh(new TcpMesh);
  auto listener = listen_on(address.empty() ? "0.0.0.0" : address, 0);
  if (!listener) return tl::unexpected(listener.error());
  mesh->port_ = listener->port;
  mesh->listener_ = std::move(*listener);
  mesh->secret_ = std::move(secret);
  mesh->stop_.reset(eventfd(0, EFD_CLOEXEC));
  if (!mesh->stop_.is_open()) {
    return fail(ErrorCode::unavailable, "cannot create an eventfd: " + reason(errno),
                "raise the number of open files (ulimit -n)");
  }
  auto thread = start_background_thread([self = mesh.get()] { self->serve(); });
  if (!thread) return tl::unexpected(thread.error());
  mesh->thread_ = std::move(*thread);
  return mesh;
}

TcpMesh::~TcpMesh() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void TcpMesh::serve() {
  std::list<Stranger> strangers;
  const auto admit = [&](Stranger& stranger) {  // True when the stranger is one no longer.
    if (!hear(stranger.fd.get(), stranger.heard, claim_size)) return true;
    if (stranger.heard.size() < claim_size) return false;
    const auto claim = decode_claim(stranger.heard, stranger.nonce, secret_);
    if (!claim || !say(stranger.fd.get(), encode_welcome(*claim, stranger.nonce, secret_))) return true;
    const std::lock_guard lock(mutex_);
    connections_[claim->key] = std::move(stranger.fd);
    arrived_.notify_all();
    return true;
  };
  while (true) {
    std::vector<pollfd> watched = {{stop_.get(), POLLIN, 0}, {listener_.fd.get(), POLLIN, 0}};
    for (const Stranger& stranger : strangers) watched.push_back({stranger.fd.get(), POLLIN, 0});
    poll(watched.data(), watched.size(), strangers.empty() ? -1 : 100);
    if (watched[0].revents != 0) return;
    while (true) {
      FileDescriptor fd(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.is_open()) {
        if (errno == EMFILE || errno == ENFILE) {
          {
            const std::lock_guard lock(mutex_);
            lacks_files_ = true;
            arrived_.notify_all();
          }
          std::this_thread::sleep_for(milliseconds(10));
        }
        break;
      }
      set_up(fd.get());
      const auto nonce = random_digest();
      if (!nonce || !say(fd.get(), encode_hello(*nonce))) continue;
      if (strangers.size() == most_strangers) strangers.pop_front();
      strangers.push_back({std::move(fd), *nonce, {}, Clock::now() + greeting_time});
    }
    std::erase_if(strangers, [&](Stranger& stranger) { return admit(stranger) || Clock::now() > stranger.deadline; });
  }
}

Result<FileDescriptor> TcpMesh::connect(const ConnectionKey& key, const Target& target, Clock::time_point deadline,
                                        const ControlPlane& control) {
  const auto addresses = resolve(target.address, target.port);
  if (!addresses) return tl::unexpected(addresses.error());
  std::optional<AddressList> near;
  if (!target.bind.empty()) {
    auto resolved = resolve(target.bind, 0);
    if (!resolved) return tl::unexpected(resolved.error());
    near = std::move(*resolved);
  }
  while (true) {
    auto fd = try_connect(**addresses, near ? near->get() : nullptr, milliseconds(1000), control);
    if (fd) {
      if (auto greeted = greet(fd->get(), key, deadline, control); !greeted) fd = tl::unexpected(greeted.error());
    }
    if (fd) return fd;
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (Clock::now() > deadline || fd.error().code != ErrorCode::unavailable) {
      return fail(fd.error().code,
                  fmt::format("{}: {}", endpoint_text(target.address, target.port), fd.error().message),
                  fd.error().help);
    }
    std::this_thread::sleep_for(look_interval);
  }
}

Result<void> TcpMesh::greet(int fd, const ConnectionKey& key, Clock::time_point deadline,
                            const ControlPlane& control) const {
  const auto hello = await(fd, hello_size, deadline, control);
  if (!hello) return tl::unexpected(hello.error());
  const auto hello_nonce = decode_hello(*hello);
  if (!hello_nonce) return tl::unexpected(hello_nonce.error());
  const auto nonce = random_digest();
  if (!nonce) return tl::unexpected(nonce.error());
  const StreamClaim claim{key, *nonce};
  if (!say(fd, encode_claim(claim, *hello_nonce, secret_))) {
    return fail(ErrorCode::unavailable, "the other end closed the connection");
  }
  const auto welcome = await(fd, welcome_size, deadline, control);
  if (!welcome) return tl::unexpected(welcome.error());
  return decode_welcome(*welcome, claim, *hello_nonce, secret_);
}

Result<FileDescriptor> TcpMesh::accept(const ConnectionKey& key, Clock::time_point deadline,
                                       const ControlPlane& control) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (const auto found = connections_.find(key); found != connections_.end()) {
      FileDescriptor fd = std::move(found->second);
      connections_.erase(found);
      return fd;
    }
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (lacks_files_) {
      return fail(ErrorCode::unavailable,
                  fmt::format("no file is left for the connection of rank {}: Too many open files", key.src),
                  "raise the number of open files (ulimit -n)");
    }
    if (Clock::now() > deadline) {
      return fail(ErrorCode::unavailable, fmt::format("rank {} did not connect in time", key.src),
                  "see that no firewall is between the ranks");
    }
    arrived_.wait_for(lock, look_interval);
  }
}

}  // namespace espalier::engine
