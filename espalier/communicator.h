#pragma once

// Ranks of a job and what they call.
#include "engine/communicator/communicator.h"  // IWYU pragma: export
#include "engine/rendezvous/secret.h"          // IWYU pragma: export
#include "forecast/sources/advisor.h"          // IWYU pragma: export
#include "schedule/schedule_source.h"          // IWYU pragma: export
