#pragma once

// Measured runs and timelines held against predicted ones.
#include "compare/compare_results.h"    // IWYU pragma: export
#include "compare/compare_timelines.h"  // IWYU pragma: export
#include "compare/read/read_run.h"      // IWYU pragma: export
