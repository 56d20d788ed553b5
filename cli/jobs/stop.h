#pragma once

// Tested by: tests/unit/cli/calibration/profile_calibration_test.cpp

#include <tl/expected.hpp>
#include <utility>

#include "base/result.h"

namespace espalier::cli {

/// Why a verb stops: an error, of the command line itself or of what it named.
struct Stop {
  Error error;
  bool is_usage = false;
  bool is_shown = false;  ///< Diagnostics have said it already.
};

template <class T>
using OrStop = tl::expected<T, Stop>;

inline tl::unexpected<Stop> usage(Error error) { return tl::unexpected(Stop{std::move(error), true, false}); }
inline tl::unexpected<Stop> stop(Error error) { return tl::unexpected(Stop{std::move(error), false, false}); }

}  // namespace espalier::cli
