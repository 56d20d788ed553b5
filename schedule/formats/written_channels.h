#pragma once

// Tested by: tests/property/schedule/formats_test.cpp

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace espalier {

/// Channels for forms in which they are few and count between two ranks. Those of a schedule are lanes of their own for
/// each sender and receiver, so that what one tree sends does not stand behind what another does.
struct WrittenChannels {
  std::vector<std::uint32_t> numbers;  ///< By transfer, below `most`.
  std::uint32_t max_lanes = 0;         ///< Of two ranks, at most: lanes that the schedule has between them.
  std::uint32_t most = 0;

  [[nodiscard]] bool are_folded() const { return max_lanes > most; }
};

/// Numbers the lanes of each sender and receiver from 0 on, in the order of their first transfers. Where they take
/// several routes, such as parallel links, lanes of one route have numbers that are equal modulo how many routes there
/// are: readers take routes in turn. Lanes past `most` share the numbers of others. Requires: most > 0.
WrittenChannels number_channels(const Schedule& schedule, std::uint32_t most);

/// What a form that has neither links nor the size of chunks loses of a schedule, a sentence each.
std::vector<std::string> lost_by(const Schedule& schedule, std::string_view format);
/// The same with channels that share numbers.
std::vector<std::string> lost_by(const Schedule& schedule, const WrittenChannels& channels, std::string_view format);

}  // namespace espalier
