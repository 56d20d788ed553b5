#pragma once

// Tested by: tests/unit/schedule/json/schedule_json_test.cpp

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

struct WriteOptions {
  bool embed_network = true;                   ///< Adds the topology, so that the file is complete in itself.
  std::optional<Rank> of_rank = std::nullopt;  ///< The schedule is this rank's part alone.
};

/// Writes the JSON form of docs/schedule.md, a line per slice and transfer, as a stream: nothing is held but a buffer.
/// Requires: a schedule of this topology that keeps rules S1 and S2, with routes over its links, none of them empty.
/// Errors: unavailable when the stream does not take it all.
Result<void> write_schedule(std::ostream& out, const Schedule& schedule, const Topology& topology,
                            const WriteOptions& options = {});

/// A schedule that was read and the network that its routes belong to.
struct PlanFile {
  Schedule schedule;
  Topology topology;
  /// False when neither the file nor the caller had a network: `topology` then holds the nodes and links that the
  /// routes name, with rates that mean nothing. Such a plan can be verified against itself, not simulated.
  bool network_was_given = true;
  /// The rank whose transfers alone are there; none: the schedule is whole.
  std::optional<Rank> of_rank = {};
  std::vector<Diagnostic> warnings;
};

/// Reads the JSON form. Ids, counts and names are checked as they are read; what the plan means is for `verify` to say.
/// A given `topology` takes the place of the file's own. `name` stands for the file in messages.
/// Errors: invalid_input with file:line:column, the transfer or slice, what is wrong and what to write; unsupported for
/// another version; too_large past a limit of schedule/schedule.h.
/// Cost: linear in the text; memory for the schedule and its distinct routes, none for a document.
Result<PlanFile> read_plan(std::string_view text, std::string name, const Topology* topology = nullptr);

}  // namespace espalier
