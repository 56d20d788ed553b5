#include "lab/shaping.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::lab {
namespace {

constexpr std::int64_t microseconds_per_second = 1'000'000;

std::int64_t bytes_in(Bandwidth rate, std::int64_t microseconds) {
  return static_cast<std::int64_t>(static_cast<__int128>(rate.bytes_per_second) * microseconds /
                                   microseconds_per_second);
}

}  // namespace

std::int64_t Framing::counted() const {
  constexpr std::int64_t ethernet = 14;
  return packet + ethernet;
}

std::int64_t Framing::data() const {
  constexpr std::int64_t ip = 20;
  constexpr std::int64_t tcp_with_time_stamps = 32;
  return packet - ip - tcp_with_time_stamps;
}

Framing choose_framing(Bandwidth slowest) {
  constexpr std::int64_t ordinary = 1500;
  constexpr std::int64_t jumbo = 9000;
  constexpr std::int64_t longest_us = 500;
  return {std::clamp(bytes_in(slowest, longest_us), ordinary, jumbo)};
}

Shape shape_link(Bandwidth rate, Picoseconds delay, const Framing& framing) {
  constexpr std::int64_t burst_us = 300;
  constexpr int bits_per_byte = 8;
  Shape shape;
  shape.bits_per_second = static_cast<std::int64_t>(static_cast<__int128>(rate.bytes_per_second) * bits_per_byte *
                                                    framing.counted() / framing.data());
  shape.burst = std::max(bytes_in(rate, burst_us), framing.counted() + framing.counted() / 4);
  shape.limit = std::max<std::int64_t>(std::int64_t{256} << 20U, 2 * shape.burst);
  shape.delay = delay;
  return shape;
}

std::string shaping_lines(std::string_view device, const Shape& shape) {
  std::string lines = fmt::format("qdisc add dev {} root handle 1: tbf rate {}bit burst {} limit {}\n", device,
                                  shape.bits_per_second, shape.burst, shape.limit);
  if (shape.delay.count > 0) {
    constexpr std::int64_t ps_per_ns = 1000;
    constexpr int packets_waiting = 1'000'000;
    lines += fmt::format("qdisc add dev {} parent 1:1 handle 2: netem delay {}ns limit {}\n", device,
                         shape.delay.count / ps_per_ns, packets_waiting);
  }
  return lines;
}

std::int64_t receive_window(Bandwidth fastest) {
  constexpr std::int64_t answer_us = 20'000;
  return std::clamp(bytes_in(fastest, answer_us), std::int64_t{256} << 10U, std::int64_t{4} << 20U);
}

}  // namespace espalier::lab
