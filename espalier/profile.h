#pragma once

// What software adds to links; own profiles.
#include "profile/profile.h"        // IWYU pragma: export
#include "profile/read_profile.h"   // IWYU pragma: export
#include "profile/write_profile.h"  // IWYU pragma: export
