#include "engine/tcp/tcp_mesh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error_text.h"
#include "engine/rendezvous/background_thread.h"
#include "engine/rendezvous/wire/addresses.h"
#include "engine/tcp/greeting.h"

namespace espalier::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds greeting_time{5000};
constexpr milliseconds look_interval{20};  ///< How often who waits looks whether the job still lives.
/// A shortage of descriptors may pass; one that lasts so long is reported to callers that wait.
constexpr milliseconds patience_for_files{1000};

void set_up(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// Reads up to `size` bytes in all; false when the connection ended.
bool receive(int fd, std::string& received, std::size_t size) {
  while (received.size() < size) {
    std::array<char, 128> bytes;
    const ssize_t got = recv(fd, bytes.data(), std::min(bytes.size(), size - received.size()), MSG_DONTWAIT);
    if (got > 0) {
      received.append(bytes.data(), static_cast<std::size_t>(got));
    } else {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
  }
  return true;
}

/// The messages of a greeting fit any socket buffer: a short write is a broken connection.
bool send_all(int fd, std::string_view text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

Result<FileDescriptor> cannot_connect(int error, std::string_view what, ErrorCode code = ErrorCode::unavailable) {
  const bool lacks_files = error == EMFILE || error == ENFILE;
  return fail(code, fmt::format("{}: {}", what, error_text(error)),
              lacks_files
                  ? "raise the number of open files (ulimit -n)"
                  : "see that no firewall is between the ranks, and that the address is that of the other machine");
}

/// A connected socket. Errors: unavailable when nobody answers there now, or the job failed; too_large for want of
/// descriptors; invalid_input when trying again would not help.
Result<FileDescriptor> try_connect(const addrinfo& address, const addrinfo* near, milliseconds longest,
                                   const rendezvous::ControlPlane& control) {
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
Result<std::string> await(int fd, std::size_t size, Clock::time_point deadline,
                          const rendezvous::ControlPlane& control) {
  Result<std::string> received = std::string();
  while (true) {
    if (!receive(fd, *received, size)) return fail(ErrorCode::unavailable, "the other end closed the connection");
    if (received->size() == size) return received;
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (Clock::now() > deadline) return fail(ErrorCode::unavailable, "the other end did not answer in time");
    pollfd waiting{fd, POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(look_interval.count()));
  }
}

}  // namespace

TcpMesh::TcpMesh(std::string secret, std::uint32_t rank)
    : secret_(std::move(secret)), rank_(rank), pending_(poller_, rendezvous::pending_places_for(0), greeting_time) {}

Result<std::unique_ptr<TcpMesh>> TcpMesh::create(const std::string& address, std::string secret, std::uint32_t rank) {
  std::unique_ptr<TcpMesh> mesh(new TcpMesh(std::move(secret), rank));
  auto listener = address.empty() ? rendezvous::listen_on_all(0) : rendezvous::listen_on(address, 0);
  if (!listener) return tl::unexpected(listener.error());
  mesh->port_ = listener->port;
  if (auto opened = mesh->poller_.open(); !opened) return tl::unexpected(opened.error());
  if (auto opened = mesh->pending_.open(std::move(*listener)); !opened) return tl::unexpected(opened.error());
  auto thread = rendezvous::start_background_thread([self = mesh.get()] { self->serve(); });
  if (!thread) return tl::unexpected(thread.error());
  mesh->thread_ = std::move(*thread);
  return mesh;
}

TcpMesh::~TcpMesh() {
  if (!thread_.joinable()) return;
  is_ending_.store(true, std::memory_order_relaxed);
  poller_.wake();
  thread_.join();
}

void TcpMesh::serve() {
  while (true) {
    const auto events = poller_.wait(pending_.next_deadline());
    if (is_ending_.load(std::memory_order_relaxed)) return;
    const auto now = Clock::now();
    const bool is_served = rendezvous::has_memory_for([&] {
      for (const rendezvous::Poller::Event& event : events) handle(event.token, now);
      pending_.expire(now);
    });
    // Who has not authenticated is the first to go when memory is short, and comes again by itself.
    if (!is_served) pending_.clear();
    const std::lock_guard lock(mutex_);
    if (lacks_files_since_ == pending_.lacks_files_since()) continue;
    lacks_files_since_ = pending_.lacks_files_since();
    arrived_.notify_all();
  }
}

void TcpMesh::handle(std::uint64_t token, Clock::time_point now) {
  if (token == rendezvous::PendingConnections<Pending>::listener_token) return pending_.accept(now, welcome);
  Pending* pending = pending_.find(token);
  if (pending != nullptr && authenticate(token, *pending)) pending_.drop(token);
}

std::optional<TcpMesh::Pending> TcpMesh::welcome(FileDescriptor socket) {
  set_up(socket.get());
  const auto nonce = rendezvous::random_digest();
  if (!nonce || !send_all(socket.get(), encode_hello(*nonce))) return std::nullopt;
  return Pending{std::move(socket), *nonce, {}};
}

bool TcpMesh::authenticate(std::uint64_t token, Pending& pending) {
  if (!receive(pending.fd(), pending.received, claim_size)) return true;
  if (pending.received.size() < claim_size) return false;
  const auto claim = decode_claim(pending.received, pending.nonce, secret_);
  if (!claim || claim->dst != rank_) return true;
  const std::string answer = encode_welcome(*claim, pending.nonce, secret_);
  const std::lock_guard lock(mutex_);
  FileDescriptor& place = connections_[claim->key];  // The last thing that there may be no memory for.
  if (!send_all(pending.fd(), answer)) {
    if (!place.is_open()) connections_.erase(claim->key);
    return true;
  }
  poller_.forget(pending.fd());
  place = pending_.take(token).socket;
  arrived_.notify_all();
  return false;
}

Result<FileDescriptor> TcpMesh::connect(const ConnectionKey& key, const Target& target, Clock::time_point deadline,
                                        const rendezvous::ControlPlane& control) {
  std::optional<Clock::time_point> lacks_files_since;
  while (true) {
    auto fd = try_addresses(key, target, deadline, control);
    if (fd) return fd;
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    const auto now = Clock::now();
    const bool lacks_files = fd.error().code == ErrorCode::too_large;
    if (!lacks_files) lacks_files_since.reset();
    if (lacks_files && !lacks_files_since) lacks_files_since = now;
    const bool is_final =
        lacks_files ? now - *lacks_files_since > patience_for_files : fd.error().code != ErrorCode::unavailable;
    if (now > deadline || is_final) return fd;
    std::this_thread::sleep_for(look_interval);
  }
}

Result<FileDescriptor> TcpMesh::try_addresses(const ConnectionKey& key, const Target& target,
                                              Clock::time_point deadline, const rendezvous::ControlPlane& control) {
  std::size_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = answered_at_.find(target.rank); known != answered_at_.end()) first = known->second;
  }
  const std::size_t count = target.addresses.size();
  Result<FileDescriptor> failed =
      fail(ErrorCode::invalid_input, fmt::format("rank {} told no address of its machine", target.rank),
           "run the same version of espalier on all ranks");
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t address = (first + i) % count;
    auto fd = try_address(key, target, address, deadline, control);
    if (fd) {
      const std::lock_guard lock(mutex_);
      answered_at_[target.rank] = address;
      return fd;
    }
    if (control.has_failed() || fd.error().code == ErrorCode::too_large) return fd;
    // Somebody else may have one of these addresses here, and say anything: what may yet succeed counts.
    if (i == 0 || fd.error().code == ErrorCode::unavailable) failed = std::move(fd);
  }
  return failed;
}

Result<FileDescriptor> TcpMesh::try_address(const ConnectionKey& key, const Target& target, std::size_t address,
                                            Clock::time_point deadline, const rendezvous::ControlPlane& control) const {
  const std::string& host = target.addresses[address];
  const auto addresses = rendezvous::resolve(host, target.port);
  if (!addresses) return tl::unexpected(addresses.error());
  std::optional<rendezvous::AddressList> near;
  if (!target.bind.empty()) {
    auto resolved = rendezvous::resolve(target.bind, 0);
    if (!resolved) return tl::unexpected(resolved.error());
    near = std::move(*resolved);
  }
  // Whoever has the address here may say nothing for ever.
  const auto until = target.addresses.size() > 1 ? std::min(deadline, Clock::now() + greeting_time) : deadline;
  auto fd = try_connect(**addresses, near ? near->get() : nullptr, milliseconds(1000), control);
  if (fd) {
    const auto nonce = rendezvous::random_digest();
    if (!nonce) return tl::unexpected(nonce.error());
    auto greeted = greet(fd->get(), {key, *nonce, target.rank}, until, control);
    if (greeted) return fd;
    fd = tl::unexpected(greeted.error());
  }
  return fail(fd.error().code, fmt::format("{}: {}", rendezvous::endpoint_text(host, target.port), fd.error().message),
              fd.error().help);
}

Result<void> TcpMesh::greet(int fd, const StreamClaim& claim, Clock::time_point deadline,
                            const rendezvous::ControlPlane& control) const {
  const auto hello = await(fd, hello_size, deadline, control);
  if (!hello) return tl::unexpected(hello.error());
  const auto hello_nonce = decode_hello(*hello);
  if (!hello_nonce) return tl::unexpected(hello_nonce.error());
  if (!send_all(fd, encode_claim(claim, *hello_nonce, secret_))) {
    return fail(ErrorCode::unavailable, "the other end closed the connection");
  }
  const auto welcome = await(fd, welcome_size, deadline, control);
  if (!welcome) return tl::unexpected(welcome.error());
  return decode_welcome(*welcome, claim, *hello_nonce, secret_);
}

Result<FileDescriptor> TcpMesh::accept(const ConnectionKey& key, Clock::time_point deadline,
                                       const rendezvous::ControlPlane& control) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (const auto found = connections_.find(key); found != connections_.end()) {
      FileDescriptor fd = std::move(found->second);
      connections_.erase(found);
      return fd;
    }
    if (control.has_failed()) return tl::unexpected(control.failure_error());
    if (lacks_files_since_ && Clock::now() - *lacks_files_since_ > patience_for_files) {
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
