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
  bool gives_up = false;  ///< The call, after the rank has entered.
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

/// Calls are added when their first rank enters, as jobs do it: in a turn of its own at once, or so much later with all
/// that are at its moment.
Answers run(Model& model, const std::vector<CompiledSchedule>& calls, const std::vector<Made>& made,
            const std::vector<Entry>& entries, std::int64_t launch = 0) {
  std::vector<RankEnd> ended;
  std::vector<RunId> runs(made.size());
  std::int64_t passed = -1;
  for (const Entry& entry : entries) {
    if (launch == 0 || entry.time != passed) {
      while (model.next_time() <= entry.time) model.advance(ended);
      passed = entry.time;
      model.pass(passed);
    }
    const Made& call = made[entry.call];
    RunId& id = runs[entry.call];
    if (id.is_none()) id = *model.add(calls[call.kind], {call.size, Bytes{16}, 1});
    model.enter(id, entry.rank, entry.time + launch);
    if (entry.gives_up) model.abort(id);
  }
  while (model.next_time() != never) model.advance(ended);
  Answers answers{{}, model.links(), model.events()};
  for (const RankEnd& end : ended) answers.ends.emplace_back(end.run, end.rank, end.time);
  std::ranges::sort(answers.ends);
  return answers;
}

std::int64_t launch_of(std::uint64_t seed) { return seed % 2 == 0 ? 0 : 7; }

/// Ends, events and what links carried are those of a model that simulates every run.
void expect_as_simulated(const Network& network, const std::vector<CompiledSchedule>& calls,
                         const std::vector<Made>& made, std::vector<Entry> entries, std::uint64_t seed) {
  std::ranges::stable_sort(entries, {}, &Entry::time);
  const auto simulated = make_model(ModelKind::link, network, {});
  const auto remembering = make_remembering_model(ModelKind::link, network, {});
  const Answers all = run(*simulated, calls, made, entries, launch_of(seed));
  const Answers known = run(*remembering, calls, made, entries, launch_of(seed));
  EXPECT_EQ(known.ends, all.ends) << seed;
  EXPECT_EQ(known.events, all.events) << seed;
  EXPECT_EQ(known.links, all.links) << seed;
  const bool all_end = std::ranges::none_of(entries, &Entry::gives_up);
  EXPECT_TRUE(!all_end || known.ends.size() == entries.size()) << seed;
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
    expect_as_simulated(network, calls, made, entries, seed);
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
    expect_as_simulated(network, calls, made, std::move(entries), seed);
  }
}

/// Messages whose receiver waits for a long time, as stages of a pipeline do, beside others on the same links.
TEST(LoneRuns, MessagesThatAreWaitedForAnswerAsIfAllWereSimulated) {
  std::vector<Machine> machines(2, Machine(2));
  for (std::size_t way = 0; way < 2; ++way) {
    machines[way].slice_units = {1};
    const LinkId there = machines[way].add_link(0, 1, 10), back = machines[way].add_link(1, 0, 10);
    machines[way].send({way == 0 ? there : back});
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
    for (std::size_t call = 0; call < 20; ++call) {
      time += static_cast<std::int64_t>(random.below(200));
      made.push_back({random.below(2), {static_cast<std::int64_t>(16 + random.below(2) * 100)}});
      const auto late = static_cast<std::int64_t>(random.below(2) * random.below(400));
      const std::size_t first = random.below(2);
      entries.push_back({time, call, Rank(first)});
      entries.push_back({time + late, call, Rank(1 - first)});
    }
    expect_as_simulated(network, calls, made, std::move(entries), seed);
  }
}

/// Few patterns of entries, again and again: what was found out of one is read for the next, with others that come at
/// any moment of it.
TEST(LoneRuns, GroupsThatComeAgainAnswerAsIfAllWereSimulated) {
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
    std::vector<Entry> entries;
    struct Pattern {
      std::vector<std::size_t> kinds;
      std::vector<std::int64_t> times;  // of all ranks of each
    };
    std::vector<Pattern> patterns(1 + random.below(3));
    for (Pattern& pattern : patterns) {
      const std::size_t count = 1 + random.below(4);
      const std::uint64_t gap = std::uint64_t{1} << random.below(7);
      for (std::size_t i = 0; i < count; ++i) {
        pattern.kinds.push_back(random.below(4));
        const std::uint64_t begin = i * random.below(gap);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          pattern.times.push_back(static_cast<std::int64_t>(begin + random.below(2) * random.below(gap)));
        }
      }
    }
    std::int64_t time = 0;
    for (std::size_t turn = 0; turn < 20; ++turn) {
      const Pattern& pattern = patterns[random.below(patterns.size())];
      for (std::size_t i = 0; i < pattern.kinds.size(); ++i) {
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          entries.push_back({time + pattern.times[i * ranks + rank], made.size(), Rank(rank)});
        }
        if (random.below(40) == 0) {
          const auto last_of_call = [&](const Entry& a, const Entry& b) {
            return std::tuple(a.call == made.size(), a.time) <= std::tuple(b.call == made.size(), b.time);
          };
          std::max_element(entries.begin(), entries.end(), last_of_call)->gives_up = true;
        }
        made.push_back({pattern.kinds[i], {82}});
      }
      time += static_cast<std::int64_t>(50 + 50 * random.below(8));
    }
    expect_as_simulated(network, calls, made, std::move(entries), seed);
  }
}

/// Like boxes, whose calls come at the same moments, or nearly so: what one box shows another reads, also while it goes
/// on.
TEST(LoneRuns, LikeBoxesAnswerAsIfAllWereSimulated) {
  constexpr std::size_t boxes = 3;
  Machine whole(boxes * ranks);
  whole.slice_units = {1};
  const std::size_t links = ranks * (ranks - 1);
  for (std::size_t link = 0; link < boxes * links; ++link) {
    const std::size_t src = link % links / (ranks - 1);
    const std::size_t turn = link % (ranks - 1);
    const std::size_t first = link / links * ranks;
    whole.add_link(first + src, first + turn + (turn >= src ? 1 : 0), static_cast<std::int64_t>(10 + src));
  }
  const Topology topology = whole.topology();
  const Network network(topology);
  const std::vector<Machine> machines = make_calls();
  const Topology box = machines.front().topology();
  std::vector<Schedule> schedules;
  for (const Machine& machine : machines) schedules.push_back(machine.schedule());
  std::vector<CompiledSchedule> calls;
  for (std::size_t i = 0; i < boxes; ++i) {
    Parts places;
    for (std::size_t node = 0; node < ranks; ++node) places.nodes.emplace_back(i * ranks + node);
    for (std::size_t link = 0; link < links; ++link) places.links.emplace_back(i * links + link);
    for (const Schedule& schedule : schedules) {
      calls.push_back(*CompiledSchedule::make_unverified(schedule, box, network, places));
    }
  }
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    std::vector<Made> made;
    std::vector<Entry> entries;
    std::int64_t time = 0;
    const std::uint64_t gap = std::uint64_t{1} << random.below(7);
    for (std::size_t turn = 0; turn < 12; ++turn) {
      const std::size_t count = 1 + random.below(3);
      for (std::size_t call = 0; call < count; ++call) {
        const std::size_t kind = random.below(machines.size());
        const auto begin = time + static_cast<std::int64_t>(random.below(gap));
        const auto apart = static_cast<std::int64_t>(random.below(2) * random.below(gap));
        for (std::size_t i = 0; i < boxes; ++i) {
          const auto late = static_cast<std::int64_t>(random.below(4) == 0 ? random.below(gap) : 0);
          for (std::size_t rank = 0; rank < ranks; ++rank) {
            const auto own = static_cast<std::int64_t>(random.below(20) == 0 ? random.below(gap) : 0);
            entries.push_back({begin + late + own + apart * static_cast<std::int64_t>(rank), made.size(), Rank(rank)});
          }
          made.push_back({i * machines.size() + kind, {82}});
        }
      }
      time += static_cast<std::int64_t>(60 * random.below(5));
    }
    expect_as_simulated(network, calls, made, std::move(entries), seed);
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
  std::vector<RankEnd> ended;
  const auto advance_to_end = [&] {
    ended.clear();
    while (model->next_time() != never) model->advance(ended);
  };
  model->enter_all(*model->add(compiled, {Bytes{100}, Bytes{100}, 1}), 0);
  advance_to_end();
  model->pass(1000);
  model->enter_all(*model->add(compiled, {Bytes{100}, Bytes{100}, 1}), 1001);
  advance_to_end();
  model->pass(2000);
  const RunId first = *model->add(compiled, {Bytes{100}, Bytes{100}, 1});
  model->enter_all(first, 2001);
  EXPECT_EQ(model->next_time(), 2101);  // nothing happens before a rank is through
  const RunId second = *model->add(compiled, {Bytes{100}, Bytes{100}, 1});
  model->enter_all(second, 2061);
  advance_to_end();
  ASSERT_EQ(ended.size(), 4U);
  const auto last = std::ranges::max(ended, {}, &RankEnd::time);
  EXPECT_EQ(last.run, second);
  EXPECT_EQ(last.time, 2211);  // behind the first one's 100 bytes
}

}  // namespace
}  // namespace espalier::sim
