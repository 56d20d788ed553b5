#pragma once

#include <string>

#include "schedule/verify/verify.h"

namespace espalier::test {

/// What verify reports, a line each.
inline std::string breaches_of(const Schedule& schedule, const Topology& topology, std::size_t limit = 100) {
  std::string text;
  for (const Breach& breach : verify(schedule, topology, limit).breaches) {
    text += (text.empty() ? "" : "\n") + describe(breach, schedule, topology);
  }
  return text;
}

}  // namespace espalier::test
