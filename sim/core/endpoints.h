#pragma once

// Tested by: tests/fuzz/fuzz_flags.cpp

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "sim/conditions.h"
#include "sim/core/network.h"

namespace espalier::sim {

/// How data is laid on the wire, as NCCL's protocols do it.
enum class Protocol : std::uint8_t {
  plain,  ///< As the topology says: all bytes are payload and starting costs nothing. What `simulate` counts alone.
  simple,
  ll,
  ll128,
};

inline constexpr std::array all_protocols = {Protocol::plain, Protocol::simple, Protocol::ll, Protocol::ll128};

/// "none", "simple", "ll", "ll128".
std::string_view to_string(Protocol protocol);
/// Errors: invalid_input, with the nearest name.
Result<Protocol> parse_protocol(std::string_view name);

/// What a rank and its protocol add to a call.
struct Endpoints {
  std::int32_t payload_ppm = 1'000'000;  ///< Payload per byte on the wire, in millionths.
  Picoseconds launch;                    ///< From a rank's decision to take part until it does.
  std::uint32_t copy_engines = 0;        ///< How many sends a rank has at once (CopyEngines); 0: any number.

  /// What a chunk keeps its source's and its destination's processor busy, which all lanes of a rank share
  /// (CopyEngines).
  Picoseconds message;

  std::uint32_t processors_per_host = 0;  ///< CopyEngines::processors_per_host.

  [[nodiscard]] CopyEngines engines() const { return {copy_engines, {}, message, processors_per_host}; }
  friend bool operator==(const Endpoints&, const Endpoints&) = default;
};

/// All that a run has and its topology does not say.
struct Circumstances {
  Endpoints endpoints;
  Conditions conditions;

  /// Nothing is added and nothing is disturbed.
  [[nodiscard]] bool are_plain() const {
    return endpoints == Endpoints() && conditions.changes.empty() && conditions.jitter_ppm == 0;
  }
};

/// The values of a protocol.
/// Payload: LL puts a 4-byte flag beside every 4 bytes of data, LL128 8 bytes of flag into every 128; Simple none
/// (Z. Hu et al., "Demystifying NCCL: An In-depth Analysis of GPU Communication Protocols and Algorithms",
/// arXiv:2507.04786, section III.D). Launch: the base latency that NCCL's tuner counts for a ring: 6.6 us (LL), 14 us
/// (LL128), 8.4 us (Simple) (NCCL 2.28, src/graph/tuning.cc, ncclTunerConstantsDefaults).
Endpoints preset(Protocol protocol);

/// How many copy engines a rank has: "0" for any number. Errors: invalid_input past max_copy_engines.
Result<std::uint32_t> parse_copy_engines(std::string_view text);

/// Payload per byte on the wire: "50%" or "0.5", in millionths. Errors: invalid_input below min_payload_ppm and
/// above 1.
Result<std::int32_t> parse_payload(std::string_view text);

}  // namespace espalier::sim
