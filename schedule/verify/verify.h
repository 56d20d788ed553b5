#pragma once

// Tested by: tests/unit/schedule/verify/verify_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// The rules of docs/schedule.md, each implemented once (S1-S4 in verify_structure.cpp, S5-S7 and S9 in
/// verify_meaning.cpp, S8 in verify_relays.cpp) and each with a negative test of its name.
enum class Rule : std::uint8_t {
  S1,  ///< Ids are in range; a transfer's source and destination differ.
  S2,  ///< Slices tile the buffer in order, in whole parts, with the ranks that their part demands.
  S3,  ///< A route is a path of the topology from source to destination whose inner nodes only forward.
  S4,  ///< Only collectives that reduce contain reduce.
  S5,  ///< A source holds what it sends.
  S6,  ///< No contribution is counted twice.
  S7,  ///< After the last transfer every rank holds exactly what the collective promises.
  S8,  ///< A relay only does what its switch can do.
  S9,  ///< A rank that must not relay only sends what it brought.
};

/// "S1", ...
std::string_view to_string(Rule rule);

/// One breach of a rule. `transfer` is none for breaches of the schedule as a whole.
struct Breach {
  Rule rule = Rule::S1;
  TransferId transfer;
  std::string message;  ///< One sentence without rule and transfer; ranks by their names.
};

/// "S6, transfer 12 (g1 to g0): ...", the whole line for a user.
std::string describe(const Breach& breach, const Schedule& schedule, const Topology& topology);

struct VerifyReport {
  std::vector<Breach> breaches;    ///< In rule, then transfer order; the first `max_reported`.
  std::uint64_t breach_count = 0;  ///< All of them, also those past the limit.
  [[nodiscard]] bool ok() const { return breach_count == 0; }
};

/// Proves that the schedule keeps its collective's promise on this topology, or reports every breach: of S1 to S6 and
/// S9 one per transfer (or slice), of S7 one per rank and slice, of S8 one per relay or transfer. The structure (S1-S4)
/// is checked first; the meaning (S5-S7, S9) and the relays (S8) only when the structure is right. Cost: O(slice moves
/// x ranks / 64) time, O(ranks x (ranks + relays) / 8) bytes and four bytes per slice move.
VerifyReport verify(const Schedule& schedule, const Topology& topology, std::size_t max_reported = 100);

/// Nothing for a schedule that passes `verify`. Errors: invalid_input with the first breach, "NAME breaks rule S7:
/// ...".
Result<void> require_verified(const Schedule& schedule, const Topology& topology, std::string_view name);

/// The same for the rules that need no network: S1, S2 and S4 to S7, of ranks that may all relay; routes are taken as
/// they are. Requires: no relays.
Result<void> require_promise(const Schedule& schedule, std::string_view name);

/// The same for the rules S1 to S4 alone, which is all that loads stand on.
Result<void> require_structure(const Schedule& schedule, const Topology& topology, std::string_view name);

}  // namespace espalier
