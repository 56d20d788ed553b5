#pragma once

#include <cstdint>

#include "base/rational.h"
#include "schedule/collective.h"
#include "schedule/timeline/run_report.h"

namespace espalier {

/// Of a message, what a bound that counts equal parts (or exact shares) is sure of: the largest one that gives every
/// part no more bytes than whole elements give it. A gather of 250 elements on 6 ranks may take as long as one of 246
/// would: the root's 42 need not move, and all others have 41 or 42.
/// Requires: size is a whole number of elements.
Bytes evenly_dealt(const Collective& collective, Bytes size, std::int64_t element_size);

/// The part of the bound's throughput that a run reached, of what the bound is sure of: never more than 1 on a right
/// simulation, however few elements there are.
double part_of_bound(const RunReport& run, const Rational& time_per_byte, const Collective& collective,
                     std::int64_t element_size);

}  // namespace espalier
