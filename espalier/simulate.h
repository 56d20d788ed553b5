#pragma once

// The simulator: one schedule at one size, or many sizes and paces of one schedule.
#include "sim/simulate.h"  // IWYU pragma: export
