#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "scenario/run/run_job.h"

/// What the tests of running jobs share.
namespace espalier::scenario::test {

constexpr std::int64_t us = 1'000'000;

/// `bytes` from one rank to another.
inline CallId add_message(Job& job, std::uint32_t src, std::uint32_t dst, std::int64_t bytes) {
  return job.add_call({.size = {bytes},
                       .group = job.add_group({Rank(src), Rank(dst)}),
                       .label = job.add_label("message"),
                       .planner = LabelId(),
                       .root = Rank(src < dst ? 0 : 1),
                       .kind = CollectiveKind::broadcast,
                       .element_size = 1});
}

/// The report of a job that is expected to be right.
inline JobReport run_checked(const Job& job, const Topology& topology, const Disturbances& disturbances = {},
                             const RunSettings& settings = {}) {
  const auto checked = check_job(job, topology);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  auto report = run_job(job, topology, disturbances, settings);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return report ? *std::move(report) : JobReport();
}

}  // namespace espalier::scenario::test
