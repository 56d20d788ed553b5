#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

// A plan: collectives, schedules, their proof, their loads, their JSON.
#include "schedule/bound.h"               // IWYU pragma: export
#include "schedule/collective.h"          // IWYU pragma: export
#include "schedule/json/schedule_json.h"  // IWYU pragma: export
#include "schedule/loads.h"               // IWYU pragma: export
#include "schedule/schedule.h"            // IWYU pragma: export
#include "schedule/verify/verify.h"       // IWYU pragma: export
