#pragma once

// Tested by: tests/options/options_test.py

#include <vector>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::cli {

/// What a slow part adds to a run, by what the run puts on links, without simulating it: where one is fuller than what
/// was fullest, each byte takes so much longer. Pipelines end when their fullest link does, and a chain of messages
/// passes the slow link as often as its load says.
class LoadResponse {
 public:
  /// `ran_on` has the machine's nodes and links, with the rates that the software reaches.
  LoadResponse(const Schedule& schedule, const Topology& ran_on, const Topology& machine);

  /// Seconds for each byte of the message, 0 or more. Requires: the machine with other rates.
  [[nodiscard]] double added_per_byte(const Topology& faulty) const;

 private:
  [[nodiscard]] double fullest(const Topology& faulty) const;

  const Topology& machine_;
  std::vector<double> of_link_, of_node_;  ///< Seconds per byte of the message on the machine.
  double before_ = 0;
};

}  // namespace espalier::cli
