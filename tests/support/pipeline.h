#pragma once

#include <gtest/gtest.h>

#include <string>

#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "schedule/interpret.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "sim/simulate.h"

/// One schedule through everything that must hold of it: verify, interpret, loads and simulation against the bound.
namespace espalier::test {

/// Every value that the collective promises is the one that interpreting the schedule gives.
inline void expect_promise_kept(const Schedule& schedule, std::uint64_t seed) {
  InterpretCase values = make_interpret_case(schedule, seed);
  interpret(schedule, values.before);
  for (std::size_t rank = 0; rank < values.before.size(); ++rank) {
    for (std::size_t element = 0; element < values.before[rank].size(); ++element) {
      if (!values.defined[rank][element]) continue;
      ASSERT_EQ(values.before[rank][element], values.after[rank][element]) << "rank " << rank << " element " << element;
    }
  }
}

/// Bytes on each link are the schedule's load, and the simulated time beats neither the load nor the bound.
inline void expect_simulation_honest(const Schedule& schedule, const Topology& topology, const Rational& bound,
                                     Bytes size, Bytes chunk) {
  sim::Options options;
  options.size = size;
  options.chunk = chunk;
  const auto report = sim::simulate(schedule, topology, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LE(report->of_bound(bound, schedule.collective), 1.0);
  for (std::size_t link = 0; link < report->links.size(); ++link) {
    EXPECT_LE(report->links[link].busy, report->elapsed) << topology.link_name(LinkId(link));
  }
}

/// All of it. A size that the units divide makes every share exact, so the load is a floor of the simulated time.
inline void expect_schedule_right(const Schedule& schedule, const Topology& topology, const Rational& bound) {
  const VerifyReport verified = verify(schedule, topology);
  ASSERT_TRUE(verified.ok()) << to_string(verified.breaches.front().rule) << ": " << verified.breaches.front().message;
  constexpr std::int64_t max_values = 2'000'000;
  const auto ranks = static_cast<std::int64_t>(topology.rank_count());
  if (schedule.units <= max_values / ranks) expect_promise_kept(schedule, 11);
  const Loads loads = compute_loads(schedule, topology);
  EXPECT_GE(loads.time_per_byte, bound) << "a schedule whose loads beat the bound";
  // The bound is a statement about exact shards, so sizes are multiples of N elements (of N x N blocks' too), or of the
  // sum of the shares.
  const std::int64_t share = 4 * schedule.collective.share_sum() * 64;
  expect_simulation_honest(schedule, topology, bound, Bytes{share}, Bytes{1 << 20});
  expect_simulation_honest(schedule, topology, bound, Bytes{share * 1024}, Bytes{share * 16});
}

}  // namespace espalier::test
