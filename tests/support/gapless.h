#pragma once

#include <gtest/gtest.h>

#include "sim/simulate.h"

namespace espalier::test {

/// The steps of a critical path follow each other from 0 to the end, each on one link or node, and queue for no longer
/// than they take.
inline void expect_gapless(const sim::Report& report) {
  Picoseconds at{0};
  for (const sim::CriticalStep& step : report.critical_path) {
    EXPECT_EQ(step.begin, at);
    EXPECT_LE(step.queued, step.end - step.begin);
    EXPECT_NE(step.link.is_none(), step.node.is_none());
    at = step.end;
  }
  EXPECT_EQ(at, report.elapsed);
}

}  // namespace espalier::test
