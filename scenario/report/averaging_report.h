#pragma once

// Tested by: tests/unit/scenario/workload/averaging_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scenario/report/report.h"
#include "scenario/workload/averaging.h"

namespace espalier::scenario {

/// How the averagings of one entry went.
struct AveragingSummary {
  std::string label;
  Averaging averaging;
  std::size_t ranks = 0;    ///< Of the largest group.
  std::size_t times = 0;    ///< Averagings, of all groups.
  std::int64_t rounds = 0;  ///< Of gossip: the most.
  double spectral_gap = 0;  ///< Of gossip: the smallest.
  double left = 0;          ///< Of gossip: the part of the distance to the mean that is left at most.
  Picoseconds mean;  ///< From the first rank's beginning to the last one's end: of gossip, the time to consensus.
};
std::vector<AveragingSummary> summarize_averaging(const Job& job, const JobReport& report,
                                                  std::span<const AveragedUse> uses);

/// What the rank that sends most put on its links, what it forwarded among it, in bytes.
std::int64_t max_bytes_sent(const JobReport& report, const Topology& topology);

}  // namespace espalier::scenario
