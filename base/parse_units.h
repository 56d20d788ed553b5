#pragma once

// Tested by: tests/unit/base/units_test.cpp

#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace espalier {

/// The largest latency or overhead of one thing, an hour: those of 2,500 in a row still add up within 64 bits.
constexpr Picoseconds max_latency{3600 * picoseconds_per_second};
/// The largest time that is read from a text, 26 days: half of the longest simulation.
constexpr Picoseconds max_duration{std::int64_t{26} * 24 * 3600 * picoseconds_per_second};

/// "25 GB/s", "200 Gbit/s", "12.5 GiB/s", "400 Gbps": decimal prefixes k M G T, binary Ki Mi Gi Ti, bits or bytes.
/// Exact: a rate that is not a whole number of bytes per second is an error, as are zero, signs, NaN and bare numbers.
/// Errors: invalid_input, with what to write instead in `help`.
Result<Bandwidth> parse_bandwidth(std::string_view text);

/// "1 us", "500 ns", "1.5 us", "20 ps", "3 ms", "1 s"; "0 ns" is allowed. Exact to the picosecond, else an error.
/// At most `max_latency`.
Result<Picoseconds> parse_latency(std::string_view text);

/// As `parse_latency`, for what may take longer: at most `max_duration`.
Result<Picoseconds> parse_duration(std::string_view text);

/// A message size as nccl-tests reads it: "8", "1K", "32M", "1G" (powers of two), also "KiB" "MiB" "GiB" and "kB" "MB"
/// "GB" (powers of ten). At most `max_message_size`.
Result<Bytes> parse_size(std::string_view text);

/// A part of one, "2%" or "0.02" or "1", in millionths. Exact: what is finer than a millionth is an error, as is what
/// is above one.
Result<std::int32_t> parse_part(std::string_view text);

}  // namespace espalier
