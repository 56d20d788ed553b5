// What TCP on the loopback carries at best when nothing else is done: two processes, one stream each way, both moving
// an array far larger than the caches. Prints one line of JSON; the rate is the sum of both directions.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "bench/engine/harness.h"

namespace espalier::bench {
namespace {

constexpr std::size_t bytes = std::size_t{64} << 20;
constexpr std::size_t most_per_call = std::size_t{1} << 20;

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
  for (int end : {near, far}) fcntl(end, F_SETFL, O_NONBLOCK);
  return {near, far};
}

void exchange(int out, int in, const std::vector<char>& source, std::vector<char>& target) {
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < bytes || received < bytes) {
    const ssize_t put = sent < bytes ? send(out, source.data() + sent, std::min(most_per_call, bytes - sent), 0) : 0;
    if (put > 0) sent += static_cast<std::size_t>(put);
    const ssize_t got =
        received < bytes ? recv(in, target.data() + received, std::min(most_per_call, bytes - received), 0) : 0;
    if (got > 0) received += static_cast<std::size_t>(got);
    if (put <= 0 && got <= 0) {
      pollfd ends[2] = {{out, static_cast<short>(sent < bytes ? POLLOUT : 0), 0},
                        {in, static_cast<short>(received < bytes ? POLLIN : 0), 0}};
      poll(ends, 2, -1);
    }
  }
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier::bench;
  Options options = parse_options(argc, argv);
  options.ranks = 2;
  options.variant = "two cold streams";
  Board* board = make_board();
  const std::array<int, 2> forth = connect_pair();
  const std::array<int, 2> back = connect_pair();
  if (board == nullptr || forth[1] < 0 || back[1] < 0) return 1;
  const Cell cell{Collective::all_reduce, 2 * bytes, 20};
  const bool good = run_ranks(2, [&](int rank) {
    pin_to_core(static_cast<std::size_t>(rank));
    const std::vector<char> source(bytes, 1);
    std::vector<char> target(bytes, 0);
    const int out = rank == 0 ? forth[0] : back[0];
    const int in = rank == 0 ? back[1] : forth[1];
    time_calls(*board, static_cast<std::size_t>(rank), 2, cell, options.seconds,
               [&] { exchange(out, in, source, target); });
    if (rank == 0) print_result(*board, 2, "tcp_limit", options, cell);
  });
  return good ? 0 : 1;
}
