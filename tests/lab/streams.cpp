#include "tests/lab/streams.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "lab/namespaces/name_space.h"

namespace espalier::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t port = 5000;
constexpr std::size_t block_size = std::size_t{256} << 10U;

sockaddr_in address_of(const std::string& text, std::uint16_t number) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(number);
  inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  return address;
}

/// A socket of the calling thread's namespace, bound to an address; -1 when that fails.
int bound_socket(const std::string& text, std::uint16_t number) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(text, number);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Stream::Stream(Stream&& other) noexcept : from(std::exchange(other.from, -1)), to(std::exchange(other.to, -1)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(from, other.from);
  std::swap(to, other.to);
  return *this;
}

Stream::~Stream() {
  if (from >= 0) close(from);
  if (to >= 0) close(to);
}

Result<Stream> connect_route(const LabNetwork& network, const RouteAddresses& route) {
  Stream stream;
  int listening = -1;
  const auto listened = inside(network.name_space(route.dst), [&]() -> Result<void> {
    listening = bound_socket(route.connect, port);
    if (listening >= 0 && listen(listening, 1) == 0) return {};
    return fail(ErrorCode::unavailable, "cannot listen on " + route.connect);
  });
  if (!listened) return tl::unexpected(listened.error());
  const auto connected = inside(network.name_space(route.src), [&]() -> Result<void> {
    stream.from = bound_socket(route.bind, 0);
    const sockaddr_in address = address_of(route.connect, port);
    if (stream.from >= 0 && connect(stream.from, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return {};
    }
    return fail(ErrorCode::unavailable, "cannot connect " + route.bind + " to " + route.connect);
  });
  if (connected) stream.to = accept(listening, nullptr, nullptr);
  close(listening);
  if (!connected) return tl::unexpected(connected.error());
  return stream;
}

double measure_rate(const Stream& stream, double seconds) {
  std::atomic<bool> ends{false};
  std::thread sender([&] {
    const std::vector<char> block(block_size, 'x');
    while (!ends) {
      if (write(stream.from, block.data(), block.size()) < 0) return;
    }
  });
  std::vector<char> block(block_size);
  const Clock::time_point begin = Clock::now();
  Clock::time_point from = begin;
  Clock::time_point now = begin;
  std::int64_t received = 0;
  constexpr double left_out = 0.2;
  const auto since = [&](Clock::time_point moment) { return std::chrono::duration<double>(now - moment).count(); };
  while (since(begin) < seconds) {
    const ssize_t count = read(stream.to, block.data(), block.size());
    if (count <= 0) break;
    now = Clock::now();
    if (since(begin) < left_out * seconds) {
      from = now;
    } else {
      received += count;
    }
  }
  const double rate = static_cast<double>(received) / since(from);
  ends = true;
  shutdown(stream.to, SHUT_RDWR);  // Lets a sender go that waits for room.
  shutdown(stream.from, SHUT_RDWR);
  sender.join();
  return rate;
}

void send_bytes(const Stream& stream, std::int64_t bytes) {
  std::thread sender([&] {
    const std::vector<char> block(block_size, 'x');
    for (std::int64_t sent = 0; sent < bytes;) {
      const ssize_t count =
          write(stream.from, block.data(), static_cast<std::size_t>(std::min<std::int64_t>(block_size, bytes - sent)));
      if (count < 0) return;
      sent += count;
    }
  });
  std::vector<char> block(block_size);
  for (std::int64_t received = 0; received < bytes;) {
    const ssize_t count = read(stream.to, block.data(), block.size());
    if (count <= 0) break;
    received += count;
  }
  sender.join();
}

}  // namespace espalier::lab
