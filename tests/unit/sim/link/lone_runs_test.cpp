#include "sim/link/lone_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "sim/link/remembering_model.h"
#include "tests/support/networks/machine.h"

namespace espalier::sim {
namespace {

using test::Machine;

constexpr std::size_t ranks = 4;

/// Four ranks, with a link from each to each.
Machine make_four() {
  Machine machine(ranks);
  machine.slice_units = {1, 1};
  for (std::size_t src = 0; src < ranks; ++src) {
    for (std::size_t dst = 0; dst < ranks; ++dst) {
      if (src != dst) machine.add_link(src, dst, static_cast<std::int64_t>(10 + src));
    }
  }
  return machine;
}

LinkId link_between(std::size_t src, std::size_t dst) { return LinkId(src * (ranks - 1) + dst - (dst > src ? 1 : 0)); }

/// Calls that share all, some or none of their links.
std::vector<Machine> make_calls() {
  std::vector<Machine> calls(4, make_four());
  for (std::size_t i = 0; i + 1 < ranks; ++i) calls[0].send({link_between(i, i + 1)}, 0, 2);
  calls[1].send({link_between(0, 1)});
  calls[1].send({link_between(1, 0)}, 1);
  calls[2].send({link_between(2, 3)}, 0, 2);
  calls[3].send({link_between(0, 1)}, 1);
  calls[3].send({link_between(1, 2)}, 1);
  return calls;
}

struct Entry {
  std::int64_t time = 0;
  std::size_t call = 0;  ///< Among those that are made.
  Rank rank;
};

struct Made {
  std::size_t kind = 0;
  Bytes size;
};

/// Calls at random moments, close to each other or not; mostly all ranks enter at once.
std::vector<Entry> draw_entries(Random& random, std::vector<Made>& made) {
  std::vector<Entry> entries;
  std::int64_t time = 0;
  const std::int64_t gap = std::int64_t{1} << random.below(10);
  for (std::size_t call = 0; call < 30; ++call) {
    time += static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(gap)));
    made.push_back({random.below(4), {static_cast<std::int64_t>(2 + random.below(3) * 40)}});
    const bool is_uneven = random.below(4) == 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto late = static_cast<std::int64_t>(is_uneven ? random.below(60) : 0);
      entries.push_back({time + late, call, Rank(rank)});
    }
  }
  std::ranges::stable_sort(entries, {}, &Entry::time);
  return entries;
}

struct Answers {
  std::vector<std::tuple<RunId, Rank, std::int64_t>> ends;
  std::vector<LinkUse> links;
  std::uint64_t events = 0;
};

/// Calls are added when their first rank enters, as jobs do it.
Answers run(Model& model, const std::vector<CompiledSchedule>& calls, const std::vector<Made>& made,
            const std::vector<Entry>& entries) {
  std::vector<RankEnd> ended;
  std::vector<RunId> runs(made.size());
  for (const Entry& entry : entries) {
    while (model.next_time() <= entry.time) model.advance(ended);
    const Made& call = made[entry.call];
    RunId& id = runs[entry.call];
    if (id.is_none()) id = *model.add(calls[call.kind], {call.size, Bytes{16}, 1});
    model.enter(id, entry.rank, entry.time);
  }
  while (model.next_time() != never) model.advance(ended);
  Answers answers{{}, model.links(), model.events()};
  for (const RankEnd& end : ended) answers.ends.emplace_back(end.run, end.rank, end.time);
  std::ranges::sort(answers.ends);
  return answers;
}

TEST(LoneRuns, AnswerAsIfAllWereSimulated) {
  const std::vector<Machine> machines = make_calls();
  const Topology topology = machines.front().topology();
  const Network network(topology);
  std::vector<Schedule> schedules;
  for (const Machine& machine : machines) schedules.push_back(machine.schedule());
  std::vector<CompiledSchedule> calls;
  for (const Schedule& schedule : schedules) {
    calls.push_back(*CompiledSchedule::make_unverified(schedule, topology, network));
  }
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::vector<Made> made;
    const std::vector<Entry> entries = draw_entries(random, made);
    const auto simulated = make_model(ModelKind::link, network, {});
    const auto remembering = make_remembering_model(ModelKind::link, network, {});
    const Answers all = run(*simulated, calls, made, entries);
    const Answers known = run(*remembering, calls, made, entries);
    ASSERT_EQ(known.ends, all.ends) << seed;
    ASSERT_EQ(known.events, all.events) << seed;
    ASSERT_EQ(known.links, all.links) << seed;
    ASSERT_EQ(known.ends.size(), made.size() * ranks);
  }
}

/// Rings whose ranks enter one after the other, again and again as in steps of training, and alone or not.
TEST(LoneRuns, RanksThatEnterOneAfterTheOtherAnswerAsIfAllWereSimulated) {
  std::vector<Machine> machines(2, make_four());
  for (std::size_t way = 0; way < 2; ++way) {
    machines[way].slice_units = {1, 1, 1, 1};
    for (std::size_t step = 0; step + 1 < ranks; ++step) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::size_t next = (rank + (way == 0 ? 1 : ranks - 1)) % ranks;
        const std::size_t slice = (rank + (way == 0 ? ranks - step : step)) % ranks;
        machines[way].send({link_between(rank, next)}, slice);
      }
    }
  }
  const Topology topology = machines.front().topology();
  const Network network(topology);
  const std::vector<Schedule> schedules = {machines[0].schedule(), machines[1].schedule()};
  std::vector<CompiledSchedule> calls;
  for (const Schedule& schedule : schedules) {
    calls.push_back(*CompiledSchedule::make_unverified(schedule, topology, network));
  }
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<Made> made;
    std::vector<Entry> entries;
    std::int64_t time = 0;
    const std::uint64_t gap = std::uint64_t{1} << random.below(13);
    for (std::size_t call = 0; call < 20; ++call) {
      time += static_cast<std::int64_t>(random.below(gap));
      made.push_back({random.below(2), {static_cast<std::int64_t>(1024 + 512 * random.below(2))}});
      const auto apart = static_cast<std::int64_t>(random.below(3) * 40);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        entries.push_back({time + apart * static_cast<std::int64_t>(rank), call, Rank(rank)});
      }
    }
    std::ranges::stable_sort(entries, {}, &Entry::time);
    const auto simulated = make_model(ModelKind::link, network, {});
    const auto remembering = make_remembering_model(ModelKind::link, network, {});
    const Answers all = run(*simulated, calls, made, entries);
    const Answers known = run(*remembering, calls, made, entries);
    ASSERT_EQ(known.ends, all.ends) << seed;
    ASSERT_EQ(known.events, all.events) << seed;
    ASSERT_EQ(known.links, all.links) << seed;
  }
}

TEST(LoneRuns, ARunThatIsTakenBackAnswersAsIfItHadNeverBeenAside) {
  Machine machine(2);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 10)});
  machine.add_link(1, 0, 10);
  const Topology topology = machine.topology();
  const Schedule schedule = machine.schedule();
  const Network network(topology);
  const auto compiled = *CompiledSchedule::make_unverified(schedule, topology, network);
  const auto model = make_remembering_model(ModelKind::link, network, {});
  const RunId first = *model->add(compiled, {Bytes{100}, Bytes{100}, 1});
  model->enter_all(first, 0);
  EXPECT_EQ(model->next_time(), 100);  // nothing happens before a rank is through
  const RunId second = *model->add(compiled, {Bytes{100}, Bytes{100}, 1});
  model->enter_all(second, 60);
  std::vector<RankEnd> ended;
  while (model->next_time() != never) model->advance(ended);
  ASSERT_EQ(ended.size(), 4U);
  const auto last = std::ranges::max(ended, {}, &RankEnd::time);
  EXPECT_EQ(last.run, second);
  EXPECT_EQ(last.time, 210);  // behind the first one's 100 bytes
}

}  // namespace
}  // namespace espalier::sim
