#pragma once

// Tested by: tests/property/schedule/formats_test.cpp

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "schedule/formats/formats.h"

namespace espalier {

/// A send or a receive of one rank. What carries the transfers of a schedule without its data is made of these.
struct RankEvent {
  bool is_send = false;
  Rank peer;
  std::int64_t bytes = 0;
  std::uint32_t tag = 0;                  ///< The transfer: a send and its receive have the same.
  std::vector<std::uint32_t> after;       ///< Events of the same rank, by place, that have to be over.
  std::optional<std::uint32_t> previous;  ///< Of a send: the one before it on its channel to that rank.
};

/// The events of every rank, in program order. All that a transfer waits for happens at one of its two ends, so that
/// ranks wait for their own events only.
/// Errors: invalid_input for a size that the schedule cannot have; unsupported for relays.
Result<std::vector<std::vector<RankEvent>>> rank_events(const Schedule& schedule, const Topology& topology,
                                                        std::string_view format, const ExportOptions& options);

/// What is lost of a schedule where such events are all that is written, a sentence each. `has_order`: `previous` is
/// written, too.
std::vector<std::string> lost_by_events(const Schedule& schedule, std::string_view format, bool has_order);

}  // namespace espalier
