#pragma once

// Tested by: tests/unit/topology/boost_graph_test.cpp

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "base/id.h"
#include "base/units.h"

namespace espalier {

/// What a link is like, wherever it leads. Whoever compares, copies or writes down links does it with the whole of
/// this, so that no field is forgotten.
struct LinkValues {
  Bandwidth nominal;                        ///< The rate as written, bytes per second.
  Picoseconds latency;                      ///< From the head of a message entering to its arrival at the far end.
  Picoseconds overhead;                     ///< Per-message cost at the sender.
  std::int32_t efficiency_ppm = 1'000'000;  ///< The reachable part of the nominal rate, in millionths.
  std::string link_class;                   ///< Name of its class ("nvlink2"); empty when not given.
  Bandwidth reported{};                     ///< Of a link that carries less than its port says: that; 0: `nominal`.

  /// The rate that planners, bounds and simulation count with: nominal x efficiency, rounded down.
  [[nodiscard]] Bandwidth bandwidth() const;
  /// The nominal rate that software reads of it.
  [[nodiscard]] Bandwidth seen_rate() const { return reported.bytes_per_second > 0 ? reported : nominal; }
  friend auto operator<=>(const LinkValues&, const LinkValues&) = default;
};

/// One directed edge. A duplex cable is two links.
struct Link : LinkValues {
  Link() = default;
  Link(NodeId from, NodeId to, LinkValues as) : LinkValues(std::move(as)), tail(from), head(to) {}

  NodeId tail;
  NodeId head;

  [[nodiscard]] const LinkValues& values() const { return *this; }
  friend auto operator<=>(const Link&, const Link&) = default;
};

}  // namespace espalier
