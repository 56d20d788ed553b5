#pragma once

// Tested by: tests/property/planners/matrix_test.cpp

#include <memory>
#include <optional>
#include <string>

#include "planners/used_paths.h"
#include "profile/profile.h"
#include "sim/core/endpoints.h"

namespace espalier::forecast {

/// What runs collectives: a profile, and how calls are started.
struct Software {
  std::string shown;  ///< "nccl-hopper", "nccl-hopper:one-process".
  profile::Profile profile;
  profile::Launch launch;
  std::optional<sim::Protocol> protocol;  ///< Only this one.
};

/// Which paths schedules may take: the profile's, any on links alone (null).
inline planners::Paths paths_of(const std::shared_ptr<const Software>& software) {
  return software != nullptr ? software->profile.paths : planners::Paths::any;
}

}  // namespace espalier::forecast
