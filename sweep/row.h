#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace espalier::sweep {

/// What one run was of: everything that decides its result. Rows are sorted by it, member by member.
struct Key {
  std::string topology;    ///< Its name.
  std::string digest;      ///< digest_of the whole topology, before anything fails.
  std::string parameters;  ///< Of a compact file: "boxes=4 rails=8"; empty when none was set.
  std::string profile;     ///< Whose costs count: "nccl-hopper"; empty: links alone.
  std::string failure;     ///< What was taken away: "gpu0-gpu1"; empty for the whole machine.
  std::string collective;
  std::string matrix;  ///< An all_to_all's, as asked for (schedule/traffic/traffic_matrix.h); empty: equal blocks.
  std::string root;    ///< A node; empty where the collective has none.
  std::string type;    ///< Element type.
  std::string algorithm;
  Bytes size;
  std::optional<Bytes> chunk;  ///< As asked for; nothing when it was chosen by schedule and size.
  std::string model;
  std::string protocol = "none";   ///< Whose payload and launch count (sim/core/endpoints.h).
  std::uint32_t copy_engines = 0;  ///< Of a rank; 0: any number.
  std::int32_t jitter_ppm = 0;
  std::uint64_t seed = 0;  ///< 0 without jitter.
  friend auto operator<=>(const Key&, const Key&) = default;
};

/// What a run gave.
struct Figures {
  std::uint64_t ranks = 0;
  std::string planner;  ///< Whose schedule ran; for "auto", what it chose.
  Bytes chunk;          ///< The largest chunk that was allowed.
  Picoseconds elapsed;
  double algbw = 0;          ///< Bytes per second.
  double busbw = 0;          ///< Bytes per second.
  double of_bound = 0;       ///< The part of the bound's throughput that was reached.
  std::string bound;         ///< Seconds per byte of the message, "p/q".
  std::string busiest;       ///< The link that was busy longest, parallel ones being one; empty when nothing moved.
  double busiest_share = 0;  ///< The part of the time for which it was busy.
  /// Between which times nine in ten measurements of its class lay (forecast/measured_errors.h), as exactly as those
  /// are known; none where nothing like it was measured.
  std::optional<Picoseconds> low, high;
  std::string outside;  ///< Why it is not what was measured; empty where it is.
  friend bool operator==(const Figures&, const Figures&) = default;
};

/// Seconds of wall clock: never the same twice, so never compared.
struct Timing {
  double planning = 0;    ///< What the planners of this run took, shared with others or not.
  double simulating = 0;  ///< This run alone.
};

/// What the reason of a run begins with whose algorithm does not plan it; all others have failed.
inline constexpr std::string_view not_planned = "not planned: ";

/// One run: what it was of, and what it gave or why it gave nothing.
struct Row {
  Key key;
  std::uint64_t alike = 1;         ///< So many failures are the same by a symmetry of the machine, this one included.
  std::optional<Figures> figures;  ///< Absent when it failed.
  std::string reason;              ///< Then: why.
  std::optional<Timing> timing;    ///< Only when it was asked for.

  /// Whether it gave nothing because its algorithm does not plan such a collective on such a network.
  [[nodiscard]] bool is_unplanned() const { return reason.starts_with(not_planned); }

  /// Whether both say the same, wall clock aside.
  [[nodiscard]] bool agrees_with(const Row& other) const;
};

/// The first 16 hexadecimal digits of the text's SHA-256.
/// Source: FIPS 180-4.
std::string digest_of(const std::string& text);

/// "all_reduce by ring at 65536 B on dgx1v without gpu0-gpu1", for messages.
std::string describe(const Key& key);

}  // namespace espalier::sweep
