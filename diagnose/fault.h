#pragma once

// Tested by: tests/unit/diagnose/diagnose_test.cpp

#include <cstdint>
#include <span>
#include <string>

#include "topology/topology.h"

namespace espalier::diagnose {

/// One thing that is wrong with a machine while collectives run on it.
struct Fault {
  enum class Kind : std::uint8_t {
    slow,  ///< A part has `rate` of its rates left.
    gone,  ///< A part is not there.
    late,  ///< A rank comes `delay` seconds late to every call.
  };

  Kind kind = Kind::slow;
  std::string part;                ///< As find_parts names it (topology/without.h); empty of a late rank.
  double rate = 1;                 ///< Of a slow part, above 0 and at most 1.
  double delay = 0;                ///< Of a late rank, in seconds.
  bool is_planned_around = false;  ///< Whether the software knew of it when it chose its schedule. Of `gone`: always.

  friend bool operator==(const Fault&, const Fault&) = default;
};

/// "slow", "gone" or "late".
std::string_view name_of(Fault::Kind kind);

/// "box0.nic0 at 50 % of its rate", "gpu0-gpu3#1 gone", "a rank that starts 40 us late".
std::string describe(const Fault& fault);

/// The machine with these faults; late ranks change nothing of it. The name stays.
/// Errors: those of slow_down and without; infeasible where a part that is gone cuts ranks off.
Result<Topology> with_faults(const Topology& machine, std::span<const Fault> faults);

/// How long the late ranks among these faults hold up every call, in seconds.
double delay_of(std::span<const Fault> faults);

}  // namespace espalier::diagnose
