#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "schedule/verify/verify.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/contention_free/walk_ring.h"
#include "tests/support/networks/machine.h"
#include "tests/support/networks/random_machine.h"
#include "tests/support/stored_ring.h"

namespace espalier {
namespace {

using test::Machine;

/// A ring through ranks in random order, each hop over its own links: one, or two with a switch between.
struct RandomRing {
  Topology topology;
  RingWalk walk;
};

RandomRing make_ring(Random& random, CollectiveKind kind, bool alike) {
  constexpr std::int64_t rates[] = {picoseconds_per_second, picoseconds_per_second / 3, 2 * picoseconds_per_second};
  const std::size_t ranks = 2 + random.below(8);
  Machine machine(ranks);
  RingWalk walk;
  walk.collective = {kind, static_cast<std::uint32_t>(ranks), {}};
  for (std::size_t i = 0; i < ranks; ++i) walk.order.emplace_back(i);
  for (std::size_t i = ranks; i-- > 1;) std::swap(walk.order[i], walk.order[random.below(i + 1)]);
  std::int64_t rate = rates[random.below(3)];
  std::int64_t latency = random.between(0, 20);
  const bool switched = random.below(2) == 0;
  for (std::size_t place = 0; place < ranks; ++place) {
    const std::size_t from = walk.order[place].index();
    const std::size_t to = walk.order[(place + 1) % ranks].index();
    if (!alike) {
      rate = rates[random.below(3)];
      latency = random.between(0, 20);
      if (random.below(2) == 0) machine.nodes[to].reduce_bandwidth = {rates[random.below(3)]};
    }
    if (switched) {
      const std::size_t middle = machine.add_switch();
      const LinkId up = machine.add_link(from, middle, latency, {rate});
      walk.hops.push_back({up, machine.add_link(middle, to, latency, {rate})});
    } else {
      walk.hops.push_back({machine.add_link(from, to, latency, {rate})});
    }
    if (!alike) machine.links.back().overhead = {random.between(0, 5)};
  }
  return {machine.topology(), std::move(walk)};
}

void expect_same(const sim::Report& walked, const sim::Report& stored) {
  EXPECT_EQ(walked.elapsed, stored.elapsed);
  EXPECT_EQ(walked.events, stored.events);
  EXPECT_EQ(walked.links, stored.links);
}

constexpr CollectiveKind walked_kinds[] = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                           CollectiveKind::all_gather};

sim::Options some_options(Random& random) {
  sim::Options options;
  options.element_size = 1;
  options.size = {random.between(0, 60)};
  options.chunk = {random.between(1, 9)};
  options.launch = {random.between(0, 30)};
  options.payload_ppm = random.below(2) == 0 ? 1'000'000 : 500'000;
  return options;
}

TEST(RingWalkProperty, IsTheStoredSchedule) {
  Random random(417);
  int walked_rings = 0;
  for (int round = 0; round < 600; ++round) {
    const RandomRing ring = make_ring(random, walked_kinds[round % 3], false);
    const Schedule stored = test::store_ring(ring.walk, ring.topology);
    const VerifyReport verified = verify(stored, ring.topology, 1);
    ASSERT_TRUE(verified.ok()) << verified.breaches.front().message;
    sim::Options options = some_options(random);
    if (random.below(3) == 0) options.conditions.jitter_ppm = 300'000;
    if (random.below(3) == 0) {
      options.conditions.changes.push_back({ring.walk.hops[0][0], {random.between(0, 50)}, 250'000});
    }
    const sim::CopyEngines engines{random.below(3) == 0 ? 1U : 0U, {}};
    const auto walked = sim::simulate_ring(ring.walk, ring.topology, options, engines);
    if (!walked) {
      EXPECT_EQ(walked.error().code, ErrorCode::unsupported) << walked.error().message;
      continue;
    }
    if (!walked->is_stored_form) continue;
    ++walked_rings;
    EXPECT_TRUE(check_ring_walk(ring.walk, ring.topology));
    expect_same(walked->report, *sim::simulate_unverified(stored, ring.topology, options, engines));
    options.record_timeline = true;  // through the event loop
    expect_same(walked->report, *sim::simulate_unverified(stored, ring.topology, options, engines));
  }
  EXPECT_GT(walked_rings, 200);
}

/// The models' ways without a queue against their event loops.
TEST(ContentionFreeProperty, ProgramOrderGivesWhatTheEventLoopGives) {
  Random random(419);
  for (int round = 0; round < 600; ++round) {
    const RandomRing ring = make_ring(random, walked_kinds[round % 3], false);
    const Schedule stored = test::store_ring(ring.walk, ring.topology);
    for (const sim::ModelKind model : sim::all_models) {
      sim::Options options = some_options(random);
      options.model = model;
      if (random.below(2) == 0) options.conditions.jitter_ppm = 300'000;
      options.conditions.seed = random.next();
      const sim::CopyEngines engines{random.below(3) == 0 ? 1U : 0U, {}};
      const sim::Report fast = *sim::simulate_unverified(stored, ring.topology, options, engines);
      options.record_timeline = true;
      expect_same(fast, *sim::simulate_unverified(stored, ring.topology, options, engines));
    }
  }
}

TEST(ContentionFreeProperty, AlsoWhereChunksWaitForDepartures) {
  // Any transfers on random machines; of those that share nothing many wait until bytes that they replace have left.
  test::RandomMachine maker(420);
  int contention_free = 0;
  for (int round = 0; round < 6000; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const Topology topology = machine.topology();
    const auto compiled = sim::CompiledSchedule::make_unverified(schedule, topology, sim::Network(topology));
    ASSERT_TRUE(compiled);
    if (compiled->shares_resources() || schedule.transfers.size() < 2) continue;
    ++contention_free;
    for (const sim::ModelKind model : sim::all_models) {
      sim::Options options;
      options.model = model;
      options.element_size = 1;
      options.size = {schedule.units * maker.random().between(0, 12)};
      options.chunk = {maker.random().between(1, 30)};
      if (maker.random().below(2) == 0) options.conditions.jitter_ppm = 300'000;
      const sim::Report fast = *sim::simulate_unverified(schedule, topology, options);
      options.record_timeline = true;
      expect_same(fast, *sim::simulate_unverified(schedule, topology, options));
    }
  }
  EXPECT_GT(contention_free, 300);
}

TEST(RingWalkProperty, WorksOutOnePlaceOfARingWhoseHopsAreAlike) {
  Random random(418);
  for (int round = 0; round < 200; ++round) {
    const RandomRing ring = make_ring(random, walked_kinds[round % 3], true);
    sim::Options options;
    options.element_size = 1;
    const auto ranks = static_cast<std::int64_t>(ring.walk.order.size());
    options.size = {random.between(0, 9) * ranks};
    options.chunk = {random.between(1, 4)};
    const auto walked = sim::simulate_ring(ring.walk, ring.topology, options);
    ASSERT_TRUE(walked) << walked.error().message;
    EXPECT_EQ(walked->places, 1U);
    if (!walked->is_stored_form) continue;
    expect_same(walked->report,
                *sim::simulate_unverified(test::store_ring(ring.walk, ring.topology), ring.topology, options));
  }
}

TEST(RingWalkProperty, SeveralRingsAreTheirStoredScheduleToo) {
  // Both ways round, in equal and unequal parts, with jitter: sizes that do not divide among them.
  Random random(421);
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t ranks = 2 + random.below(6);
    Machine machine(ranks);
    std::vector<RingWalk> walks(2);
    for (RingWalk& walk : walks) {
      walk.collective = {walked_kinds[round % 3], static_cast<std::uint32_t>(ranks), {}};
      walk.weight = random.between(1, 3);
      const bool is_back = &walk == &walks.back();
      const std::int64_t latency = random.between(0, 9);
      for (std::size_t i = 0; i < ranks; ++i) {
        const std::size_t from = is_back ? (ranks - i) % ranks : i;
        const std::size_t to = is_back ? (ranks - i - 1) % ranks : (i + 1) % ranks;
        walk.order.emplace_back(from);
        walk.hops.push_back({machine.add_link(from, to, latency, {picoseconds_per_second / random.between(1, 3)})});
      }
    }
    const Topology topology = machine.topology();
    sim::Options options = some_options(random);
    options.size = {random.between(0, 100)};
    options.chunk = {100};
    if (random.below(2) == 0) options.conditions = {.jitter_ppm = 300'000, .seed = random.next()};
    const auto walked = sim::simulate_rings(walks, topology, options);
    ASSERT_TRUE(walked) << walked.error().message;
    if (!walked->is_stored_form) continue;
    ++compared;
    const Schedule stored = test::store_rings(walks, topology);
    ASSERT_TRUE(verify(stored, topology, 1).ok());
    expect_same(walked->report, *sim::simulate_unverified(stored, topology, options));
  }
  EXPECT_GT(compared, 100);
}

TEST(RingWalkProperty, FindsThePeriodOfBoxes) {
  // Boxes of three ranks: two quick hops inside, a slow one to the next box.
  for (const std::size_t boxes : {2U, 5U}) {
    Machine machine(3 * boxes);
    RingWalk walk;
    walk.collective = {CollectiveKind::all_reduce, static_cast<std::uint32_t>(3 * boxes), {}};
    for (std::size_t i = 0; i < 3 * boxes; ++i) {
      walk.order.emplace_back(i);
      const std::int64_t rate = i % 3 == 2 ? picoseconds_per_second / 4 : picoseconds_per_second;
      walk.hops.push_back({machine.add_link(i, (i + 1) % (3 * boxes), 7, {rate})});
    }
    const Topology topology = machine.topology();
    sim::Options options;
    options.element_size = 1;
    options.size = {static_cast<std::int64_t>(30 * boxes)};
    options.chunk = {4};
    const auto walked = sim::simulate_ring(walk, topology, options);
    ASSERT_TRUE(walked) << walked.error().message;
    EXPECT_EQ(walked->places, 3U);
    expect_same(walked->report, *sim::simulate_unverified(test::store_ring(walk, topology), topology, options));
  }
}

}  // namespace
}  // namespace espalier
