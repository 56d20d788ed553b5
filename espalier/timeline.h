#pragma once

// What happened when: timelines of runs, simulated and real.
#include "schedule/timeline/timeline.h"  // IWYU pragma: export
