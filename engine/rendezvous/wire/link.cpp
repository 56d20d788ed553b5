#include "engine/rendezvous/wire/link.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/rendezvous/names.h"

namespace espalier::engine::rendezvous {

FrameLink::FrameLink(FileDescriptor fd, std::size_t largest_payload) : fd_(std::move(fd)), reader_(largest_payload) {
  const int on = 1;
  // Neither can fail on a TCP socket in a way that would matter: the connection works without them.
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

void FrameLink::send(FrameType type, std::string_view payload) {
  std::string bytes = frame_header(type, payload.size());
  bytes.append(payload);
  unsent_.push_back(std::make_shared<const std::string>(std::move(bytes)));
  flush();
}

void FrameLink::send(FrameType type, std::string_view head, std::shared_ptr<const std::string> body) {
  std::string bytes = frame_header(type, head.size() + body->size());
  bytes.append(head);
  unsent_.push_back(std::make_shared<const std::string>(std::move(bytes)));
  if (!body->empty()) unsent_.push_back(std::move(body));
  flush();
}

void FrameLink::flush() {
  while (is_open() && !unsent_.empty()) {
    const std::string& bytes = *unsent_.front();
    const int more = unsent_.size() > 1 ? MSG_MORE : 0;
    const ssize_t count =
        ::send(fd_.get(), bytes.data() + sent_, bytes.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT | more);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        unsent_.clear();
        sent_ = 0;
      }
      return;
    }
    sent_ += static_cast<std::size_t>(count);
    if (sent_ < bytes.size()) continue;
    unsent_.pop_front();
    sent_ = 0;
  }
}

void FrameLink::finish_sending() {
  if (is_open()) ::shutdown(fd_.get(), SHUT_WR);
}

bool FrameLink::fill(std::size_t most) {
  std::array<char, 65536> buffer;
  while (most > 0 && is_open()) {
    const std::size_t room = std::min(most, buffer.size());
    const ssize_t count = ::recv(fd_.get(), buffer.data(), room, MSG_DONTWAIT);
    if (count > 0) {
      const auto got = static_cast<std::size_t>(count);
      reader_.append({buffer.data(), got});
      most -= got;
      if (got < room) return true;
      continue;
    }
    if (count == 0) {
      end_ = "it closed the connection";
      return false;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    end_ = "the connection broke: " + errno_text(errno);
    return false;
  }
  return is_open();
}

std::string socket_address(int fd, SocketEnd end) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int got = end == SocketEnd::near ? getsockname(fd, generic, &length) : getpeername(fd, generic, &length);
  std::array<char, NI_MAXHOST> text{};
  if (got != 0 || getnameinfo(generic, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  const std::string name = text.data();
  // An IPv4 connection to a socket of both families.
  constexpr std::string_view mapped = "::ffff:";
  return name.starts_with(mapped) ? name.substr(mapped.size()) : name;
}

}  // namespace espalier::engine::rendezvous
