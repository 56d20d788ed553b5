#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

// Planners, bounds, and what an own planner is made of (planners/README.md).
#include "planners/bounds/bound.h"         // IWYU pragma: export
#include "planners/chooser.h"              // IWYU pragma: export
#include "planners/graph/logical_graph.h"  // IWYU pragma: export
#include "planners/pacing_search.h"        // IWYU pragma: export
#include "planners/planner.h"              // IWYU pragma: export
#include "schedule/trees/tree_schedule.h"  // IWYU pragma: export
