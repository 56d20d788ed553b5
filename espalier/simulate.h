#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

// The simulator: one schedule at one size, or many sizes and paces of one schedule.
#include "sim/simulate.h"  // IWYU pragma: export
