#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/random.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/simulate.h"
#include "tests/support/networks/machine.h"
#include "tests/support/sanitized.h"

namespace espalier {
namespace {

using test::Machine;

/// A way from one rank to another over links of its own, fast and slow ones, some through switches.
std::vector<LinkId> add_way(Machine& machine, Random& random, std::size_t from, std::size_t to) {
  constexpr std::int64_t rates[] = {picoseconds_per_second, picoseconds_per_second / 3, 2 * picoseconds_per_second,
                                    picoseconds_per_second / 7};
  std::vector<LinkId> way;
  std::size_t at = from;
  for (std::uint64_t switches = random.below(3);; --switches) {
    const std::size_t next = switches == 0 ? to : machine.add_switch();
    way.push_back(machine.add_link(at, next, random.between(0, 3) * random.between(0, 40), {rates[random.below(4)]}));
    if (random.below(4) == 0) machine.links.back().overhead = {random.between(1, 9)};
    if (switches == 0) return way;
    if (random.below(4) == 0) machine.nodes[next].bandwidth = {rates[random.below(4)]};
    at = next;
  }
}

/// What goes over the ways of a random tree, down or up it or first up and then down, slice by slice: lists of
/// transfers that may be cut off anywhere.
struct Pipeline {
  struct Hop {
    std::size_t way;
    std::size_t slice;
    Action action;
  };
  Machine machine;
  std::vector<std::vector<LinkId>> ways;
  std::vector<Hop> hops;

  /// The machine with the first transfers only.
  [[nodiscard]] Machine with_first(std::size_t count) const {
    Machine made = machine;
    for (std::size_t i = 0; i < count; ++i) made.send(ways[hops[i].way], hops[i].slice, 1, hops[i].action, 0);
    return made;
  }
};

Pipeline make_pipeline(Random& random) {
  const std::size_t ranks = 2 + random.below(4);
  Pipeline pipeline{Machine(ranks + 1), {}, {}};  // the last one only writes over what another has sent
  Machine& machine = pipeline.machine;
  std::vector<std::size_t> parent(ranks, 0);
  std::vector<std::pair<std::size_t, std::size_t>> up_and_down(ranks);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    parent[rank] = random.below(3) == 0 ? random.below(rank) : rank - 1;
    pipeline.ways.push_back(add_way(machine, random, rank, parent[rank]));
    pipeline.ways.push_back(add_way(machine, random, parent[rank], rank));
    up_and_down[rank] = {pipeline.ways.size() - 2, pipeline.ways.size() - 1};
    if (random.below(3) == 0) machine.nodes[parent[rank]].reduce_bandwidth = {picoseconds_per_second / 2};
  }
  const std::size_t overwritten = random.below(ranks);
  pipeline.ways.push_back(add_way(machine, random, ranks, overwritten));
  const bool reduces = random.below(2) == 0;
  const bool copies = !reduces || random.below(2) == 0;
  const std::size_t slices = 1 + random.below(3);
  for (std::size_t slice = 0; slice < slices; ++slice) {
    machine.slice_units.push_back(random.between(1, 3));
    for (std::size_t rank = ranks; reduces && rank-- > 1;) {
      pipeline.hops.push_back({up_and_down[rank].first, slice, Action::reduce});
    }
    for (std::size_t rank = 1; copies && rank < ranks; ++rank) {
      pipeline.hops.push_back({up_and_down[rank].second, slice, Action::copy});
    }
    if (random.below(2) == 0) pipeline.hops.push_back({pipeline.ways.size() - 1, slice, Action::copy});
  }
  return pipeline;
}

TEST(ChunkRunsProperty, GiveWhatTheEventLoopGives) {
  Random random(907);
  int compared = 0;
  for (int round = 0; round < test::random_cases(700); ++round) {
    const Pipeline pipeline = make_pipeline(random);
    sim::Options options;
    options.element_size = 1;
    options.size = {random.between(0, 600)};
    options.chunk = {random.between(1, 12)};
    options.launch = {random.between(0, 30)};
    options.payload_ppm = random.below(3) == 0 ? 500'000 : 1'000'000;
    const sim::CopyEngines engines{random.below(4) == 0 ? 1U : 0U, {}};
    if (random.below(4) == 0) options.conditions.jitter_ppm = 300'000;
    if (random.below(4) == 0) options.conditions.changes.push_back({LinkId(0), {random.between(0, 300)}, 250'000});
    // When the first so many transfers are over tells when each of them is.
    for (std::size_t count = 1; count <= pipeline.hops.size(); ++count) {
      const Machine machine = pipeline.with_first(count);
      const Schedule schedule = machine.schedule();
      const Topology topology = machine.topology();
      const auto compiled = sim::CompiledSchedule::make_unverified(schedule, topology, sim::Network(topology, engines));
      ASSERT_TRUE(compiled);
      if (compiled->shares_resources()) break;
      for (const sim::ModelKind model : sim::all_models) {
        options.model = model;
        options.record_timeline = false;
        const sim::Report fast = *sim::simulate_unverified(schedule, topology, options, engines);
        options.record_timeline = true;  // by the event loop
        const sim::Report slow = *sim::simulate_unverified(schedule, topology, options, engines);
        ASSERT_EQ(fast.elapsed, slow.elapsed) << "round " << round << " of " << count << " transfers";
        ASSERT_EQ(fast.events, slow.events);
        ASSERT_EQ(fast.links, slow.links);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, test::random_cases(3000));
}

}  // namespace
}  // namespace espalier
