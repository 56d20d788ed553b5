// What TCP on the loopback carries at best when nothing else is done: one stream each way between two cores, both
// moving an array far larger than the caches. Variant `duplex` gives each core an end of both streams, `stream per
// core` both ends of one. Prints a line of JSON each; the rate is the sum of both directions.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "bench/engine/harness.h"

namespace espalier::bench {
namespace {

constexpr std::size_t bytes = std::size_t{64} << 20;
constexpr std::size_t max_per_call = std::size_t{1} << 20;

/// Both ends of a TCP connection; -1 when there is none to be had.
std::array<int, 2> connect_pair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, generic, length) != 0 || listen(listener, 1) != 0) return {-1, -1};
  getsockname(listener, generic, &length);
  const int near = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(near, generic, length) != 0) return {-1, -1};
  const int far = accept(listener, nullptr, nullptr);
  close(listener);
  return {near, far};
}

struct Stream {
  int near;
  int far;
  std::vector<char> source;
  std::vector<char> target;
};

/// Moves what goes at once without waiting for the socket, unless told to wait; false when nothing went.
bool send_part(Stream& stream, std::size_t& sent, int flags) {
  if (sent == bytes) return false;
  const ssize_t put = send(stream.near, stream.source.data() + sent, std::min(max_per_call, bytes - sent), flags);
  if (put > 0) sent += static_cast<std::size_t>(put);
  return put > 0;
}

bool receive_part(Stream& stream, std::size_t& received, int flags) {
  if (received == bytes) return false;
  const ssize_t got =
      recv(stream.far, stream.target.data() + received, std::min(max_per_call, bytes - received), flags);
  if (got > 0) received += static_cast<std::size_t>(got);
  return got > 0;
}

void exchange(Stream& out, Stream& in) {
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < bytes || received < bytes) {
    const bool put = send_part(out, sent, MSG_DONTWAIT);
    const bool got = receive_part(in, received, MSG_DONTWAIT);
    if (put || got) continue;
    pollfd ends[2] = {{out.near, static_cast<short>(sent < bytes ? POLLOUT : 0), 0},
                      {in.far, static_cast<short>(received < bytes ? POLLIN : 0), 0}};
    poll(ends, 2, -1);
  }
}

void send_all(Stream& stream) {
  for (std::size_t sent = 0; sent < bytes;) send_part(stream, sent, 0);
}

void receive_all(Stream& stream) {
  for (std::size_t received = 0; received < bytes;) receive_part(stream, received, 0);
}

void run_duplex(std::array<Stream, 2>& streams) {
  std::vector<std::thread> threads;
  for (std::size_t core = 0; core < 2; ++core) {
    threads.emplace_back([&streams, core] {
      pin_to_core(core);
      exchange(streams[core], streams[1 - core]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_stream_per_core(std::array<Stream, 2>& streams) {
  std::vector<std::thread> threads;
  for (std::size_t core = 0; core < 2; ++core) {
    for (void (*part)(Stream&) : {send_all, receive_all}) {
      threads.emplace_back([&streams, core, part] {
        pin_to_core(core);
        part(streams[core]);
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier::bench;
  Options options = parse_options(argc, argv);
  options.ranks = 2;
  Board* board = make_board();
  std::array<Stream, 2> streams;
  for (Stream& stream : streams) {
    const std::array<int, 2> ends = connect_pair();
    stream = {ends[0], ends[1], std::vector<char>(bytes, 1), std::vector<char>(bytes, 0)};
    if (board == nullptr || stream.far < 0) return 1;
  }
  const Cell cell{Collective::all_reduce, 2 * bytes, 20};
  for (const auto& [variant, run] :
       {std::pair{"duplex", &run_duplex}, std::pair{"stream per core", &run_stream_per_core}}) {
    options.variant = variant;
    time_calls(*board, 0, 1, cell, options, [&streams, run = run] { run(streams); });
    print_result(*board, 1, "tcp_limit", options, cell);
  }
  return 0;
}
