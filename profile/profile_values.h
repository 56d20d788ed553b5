#pragma once

// Tested by: tests/unit/profile/read_profile_test.cpp

#include <span>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace espalier::profile {

enum class ValueKind : std::uint8_t { time, rate, part };

/// One number of a profile that measurements may tell: a launch, the part of a kind of link that is reached, or one of
/// an algorithm with a protocol.
struct ProfileValue {
  std::string name;  ///< "ring ll: network", "links: fabric", "launch: one-process".
  ValueKind kind = ValueKind::time;
  double value = 0;  ///< Seconds, bytes per second, or a part from 0 to 1.
};

/// The numbers above 0 that may be fitted, always in the same order. Chunks, payload, channels and the tuner's values
/// are facts of the software and not among them.
std::vector<ProfileValue> values_of(const Profile& profile);

/// The profile with other values, one for each of values_of; parts are at most 1. Requires: as many.
Profile with_values(const Profile& profile, std::span<const double> values);

/// "12.4 us", "141 GB/s", "0.82".
std::string format_value(ValueKind kind, double value);

}  // namespace espalier::profile
