#pragma once

// Tested by: tests/unit/lab/wiring_test.cpp

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace espalier::lab {

/// How large the packets of a lab are, and how much of each is not data.
struct Framing {
  std::int64_t packet = 9000;  ///< Bytes of an IP packet (the devices' MTU).

  /// Bytes that tbf counts for a packet: with its Ethernet header.
  [[nodiscard]] std::int64_t counted() const;
  /// Bytes of data in a packet: without the headers of IP and TCP (with time stamps).
  [[nodiscard]] std::int64_t data() const;
};

/// Jumbo packets, or smaller ones where half a millisecond of the slowest link is less: a switch passes a packet on
/// when it has the whole of it, and the simulator knows no such delay.
Framing choose_framing(Bandwidth slowest);

/// The settings of one direction of a cable.
struct Shape {
  std::int64_t bits_per_second = 0;  ///< What tbf lets through, headers included, so that data get the link's rate.
  std::int64_t burst = 0;            ///< Bytes that may go at once.
  std::int64_t limit = 0;            ///< Bytes that may wait.
  Picoseconds delay;                 ///< netem's; zero: none.
};

/// Burst: 300 us of the rate, what the kernel's timers may be late on a busy machine without losing rate, and at least
/// a packet and a quarter. Limit: so much that nothing is ever dropped; the receivers' windows bound what waits
/// (`receive_window`), so the network is lossless and first come first served, as in the simulator.
Shape shape_link(Bandwidth rate, Picoseconds delay, const Framing& framing);

/// The lines of `tc -batch` that give a device this shape.
std::string shaping_lines(std::string_view device, const Shape& shape);

/// Bytes of data that may be under way on one connection: 20 ms of the fastest link, 256 KiB to 4 MiB. On a busy
/// machine an answer takes that long, for every hop of it waits for a core.
std::int64_t receive_window(Bandwidth fastest);

}  // namespace espalier::lab
