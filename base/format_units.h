#pragma once

// Tested by: tests/unit/base/units_test.cpp

#include <string>

#include "base/units.h"

namespace espalier {

/// The shortest exact text that `parse_bandwidth` reads back: "25 GB/s", "12.5 GB/s", "187500 kB/s".
std::string format_bandwidth(Bandwidth bandwidth);

/// The shortest exact text that `parse_latency` reads back: "1 us", "1500 ns", "0 ns".
std::string format_latency(Picoseconds latency);

/// A message size in the largest power of 1,024 that divides it: "1 KiB", "64 MiB", "1000 B".
std::string format_size(Bytes size);

/// A message size for people, with one decimal: "1.5 KiB", "200.3 MiB"; exact below 1 KiB.
std::string format_rounded_size(Bytes size);

/// A duration for people, three to four significant digits: "12.3 us", "4.56 ms".
std::string format_duration(Picoseconds duration);

}  // namespace espalier
