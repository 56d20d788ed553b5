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
    slow,     ///< A part has `rate` of its rates left.
    gone,     ///< A part is not there.
    late,     ///< A rank comes `delay` seconds late to every call.
    setting,  ///< The software runs otherwise: `part` names a setting (setting.h).
  };

  Kind kind = Kind::slow;
  std::string part;  ///< As find_parts names it (topology/without.h); empty of a late rank; of a setting its name.
  double rate = 1;   ///< Of a slow part, above 0 and at most 1.
  double delay = 0;  ///< Of a late rank, in seconds.
  /// Whether the software knew of it when it chose its schedule. Of `gone` and `setting`: always.
  bool is_planned_around = false;

  friend bool operator==(const Fault&, const Fault&) = default;
  friend auto operator<=>(const Fault&, const Fault&) = default;
};

/// "slow", "gone", "late" or "setting".
std::string_view name_of(Fault::Kind kind);

/// "box0.nic0 at 50 % of its rate", "gpu0-gpu3#1 gone", "a rank that starts 40 us late", "PXN off".
std::string describe(const Fault& fault);

/// The machine with these faults; late ranks and most settings change nothing of it.
/// Errors: those of slow_down, without and with_setting; infeasible where a part that is gone cuts ranks off.
Result<Topology> with_faults(const Topology& machine, std::span<const Fault> faults);

/// Whether a fault leaves more or less of a rate, and is not just there or not.
inline bool has_rate(const Fault& fault) { return fault.kind == Fault::Kind::slow; }

/// How long the late ranks among these faults hold up every call, in seconds.
double delay_of(std::span<const Fault> faults);

}  // namespace espalier::diagnose
