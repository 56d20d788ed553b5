#pragma once

// Tested by: tests/unit/schedule/timeline/timeline_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/units.h"

namespace espalier {

enum class Phase : std::uint8_t { send, wire, recv, reduce };

/// "send", "wire", "recv", "reduce".
std::string_view to_string(Phase phase);

/// One thing that happened on one lane: a rank or relay (send, recv, reduce) or a link (wire).
struct Span {
  std::uint32_t lane = 0;  ///< Index of a rank, or of a relay from the number of ranks on; of a link for `wire`.
  TransferId transfer;
  std::uint32_t chunk = 0;
  Phase phase = Phase::wire;
  Picoseconds begin;
  Picoseconds end;
  friend bool operator==(const Span&, const Span&) = default;
};

/// What happened when: the same form from a simulation and from a real run.
struct Timeline {
  std::string title;                    ///< What ran: collective, algorithm, size.
  std::string origin;                   ///< "simulation" or "run".
  std::vector<std::string> rank_names;  ///< Lane names of ranks, then of relays.
  std::vector<std::string> link_names;  ///< Lane names of links.
  std::vector<Span> spans;              ///< In begin order, ties by lane.
};

}  // namespace espalier
