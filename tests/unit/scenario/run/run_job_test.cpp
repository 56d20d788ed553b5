// Times are worked out by hand: on the star every link carries 1 GB/s, so that a byte takes 1,000 ps, and a route of
// two links has 2 us of latency.

#include "scenario/run/run_job.h"

#include <gtest/gtest.h>

#include <array>

#include "planners/chooser.h"
#include "planners/planner.h"
#include "sim/simulate.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::run_checked;
using test::us;
constexpr std::int64_t kilobyte_ps = us;  // 1,000 B at 1 GB/s

/// A job under construction: tasks of a rank one after the other on stream 0.
struct Script {
  Job job;
  std::vector<TaskId> last = std::vector<TaskId>(8);

  TaskId add(std::uint32_t rank, Task task) {
    task.rank = Rank(rank);
    const std::array after{last[rank]};
    last[rank] = job.add_task(task, last[rank].is_none() ? std::span<const TaskId>() : std::span(after).first(1));
    return last[rank];
  }
  TaskId compute(std::uint32_t rank, std::int64_t duration) {
    return add(rank, {.duration = duration, .label = job.add_label("work")});
  }
  /// `bytes` from one rank to another.
  CallId message(std::uint32_t src, std::uint32_t dst, std::int64_t bytes) {
    return test::add_message(job, src, dst, bytes);
  }
  TaskId part(std::uint32_t rank, CallId call, std::uint16_t stream = 1) {
    return add(rank, {.call = call, .label = job.call(call).label, .stream = stream, .kind = TaskKind::call});
  }
};

TEST(RunJob, AMessageTakesLatencyAndBytes) {
  Script script;
  const CallId call = script.message(0, 1, 1000);
  script.part(0, call);
  script.part(1, call);
  const JobReport report = run_checked(script.job, test::star(2));
  EXPECT_EQ(report.elapsed.count, 2 * us + kilobyte_ps);
  EXPECT_EQ(report.calls[0].duration(), report.calls[0].alone);
}

/// 10 us of computing where, from 2 to 5 us, a message comes in on the stream that slows it by a half: 2 us before it,
/// 3 us in which 2 us are done, 6 us behind.
TEST(RunJob, CallsBesideSlowComputing) {
  Job job;
  const LabelId work = job.add_label("work");
  job.add_task({.duration = 10 * us, .rank = Rank(1), .label = work}, {});
  const CallId call = test::add_message(job, 0, 1, 1000);
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::array after{
        job.add_task({.duration = 2 * us, .rank = Rank(rank), .label = work, .stream = 3, .kind = TaskKind::wait}, {})};
    job.add_task({.rank = Rank(rank), .call = call, .stream = 2, .kind = TaskKind::call}, after);
  }
  RunSettings settings;
  settings.slowed_ppm = 500'000;
  settings.slowing_stream = 2;
  const auto report = run_job(job, test::star(2), {}, settings);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tasks[0].end, 11 * us);
  EXPECT_EQ(report->calls[0].end, 5 * us);
  settings.slowing_stream = 4;
  EXPECT_EQ(run_job(job, test::star(2), {}, settings)->tasks[0].end, 10 * us);
}

TEST(RunJob, ALateReceiverHoldsTheSenderBack) {
  Script script;
  const CallId call = script.message(0, 1, 1000);
  script.part(0, call);
  script.compute(1, 7 * us);
  script.part(1, call);
  const JobReport report = run_checked(script.job, test::star(2));
  EXPECT_EQ(report.elapsed.count, 10 * us);
  // The sender waits for 7 us; its bytes have left 1 us later, and it is idle while they are on the way.
  EXPECT_EQ(report.ranks[0], (RankTime{.compute = 0, .exposed = us, .waiting = 7 * us, .idle = 2 * us}));
  EXPECT_EQ(report.ranks[1], (RankTime{.compute = 7 * us, .exposed = 3 * us, .waiting = 0, .idle = 0}));
}

TEST(RunJob, CommunicationBehindComputeIsNotExposed) {
  Script script;
  const CallId call = script.message(0, 1, 1000);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    script.part(rank, call);
    script.last[rank] = TaskId();  // the compute does not wait for it
    script.compute(rank, 20 * us);
  }
  const JobReport report = run_checked(script.job, test::star(2));
  EXPECT_EQ(report.elapsed.count, 20 * us);
  EXPECT_EQ(report.ranks[0].compute, 20 * us);
  EXPECT_EQ(report.ranks[0].exposed, 0);
}

TEST(RunJob, AStreamTakesWhatWasReadyFirst) {
  Script script;
  Job& job = script.job;
  const LabelId label = job.add_label("work");
  const TaskId long_one = job.add_task({.duration = 5 * us, .rank = Rank(0), .label = label}, {});
  const TaskId early = job.add_task({.duration = us, .rank = Rank(0), .label = label, .stream = 1}, {});
  const TaskId late = job.add_task({.duration = 2 * us, .rank = Rank(0), .label = label, .stream = 2}, {});
  const std::array after_late{late}, after_early{early};
  const TaskId second = job.add_task({.duration = us, .rank = Rank(0), .label = label}, after_late);
  const TaskId first = job.add_task({.duration = us, .rank = Rank(0), .label = label}, after_early);
  const JobReport report = run_checked(job, test::star(2));
  EXPECT_EQ(report.tasks[long_one.index()].start, 0);
  EXPECT_EQ(report.tasks[first.index()].start, 5 * us);   // ready at 1 us
  EXPECT_EQ(report.tasks[second.index()].start, 6 * us);  // ready at 2 us, though its id is lower
}

TEST(RunJob, CallsThatMeetOnALinkSlowEachOther) {
  Script script;
  const CallId first = script.message(0, 2, 1'000'000), second = script.message(1, 2, 1'000'000);
  script.part(0, first);
  script.part(1, second);
  script.part(2, first, 1);
  script.last[2] = TaskId();
  script.part(2, second, 2);
  RunSettings settings;
  settings.chunk = {10'000};
  const JobReport report = run_checked(script.job, test::star(3), {}, settings);
  // The link into r2 carries both: 2 ms, and the first chunk's and the links' latency.
  EXPECT_EQ(report.elapsed.count, 2002 * us);
  const auto summary = summarize_calls(script.job, report);
  ASSERT_EQ(summary.size(), 1U);
  EXPECT_EQ(summary[0].calls, 2U);
  EXPECT_NEAR(summary[0].worst_slowdown, 2002.0 / 1002.0, 1e-9);
  const auto busiest = busiest_links(report, 1);
  EXPECT_NEAR(busiest.at(0).share, 2000.0 / 2002.0, 1e-9);
}

TEST(RunJob, EndpointsCostLaunchAndPayload) {
  Script script;
  const CallId call = script.message(0, 1, 1000);
  script.part(0, call);
  script.part(1, call);
  RunSettings settings;
  settings.endpoints = sim::preset(sim::Protocol::ll);  // 6.6 us, and half of the wire is payload
  const JobReport report = run_checked(script.job, test::star(2), {}, settings);
  EXPECT_EQ(report.elapsed.count, 6'600'000 + 2 * us + 2 * kilobyte_ps);
}

/// A scenario's endpoints and jitter mean what they mean to a simulation without one.
TEST(RunJob, OneCallTakesWhatSimulateSays) {
  const Topology topology = test::ring(6);
  const sim::Endpoints endpoints[] = {{}, sim::preset(sim::Protocol::ll128), {.launch = {7}, .copy_engines = 1}};
  for (const sim::ModelKind model : sim::all_models) {
    for (std::size_t i = 0; i < 6; ++i) {
      Job job;
      std::vector<Rank> ranks;
      for (std::size_t rank = 0; rank < 6; ++rank) ranks.emplace_back(rank);
      const CallId call = job.add_call({.size = {30'000},
                                        .group = job.add_group(ranks),
                                        .label = job.add_label("all"),
                                        .planner = job.add_label("ring")});
      for (const Rank rank : ranks)
        job.add_task({.rank = rank, .call = call, .label = LabelId(0), .kind = TaskKind::call}, {});
      RunSettings settings;
      settings.model = model;
      settings.chunk = {1000};
      settings.endpoints = endpoints[i % 3];
      Disturbances disturbances;
      if (i >= 3) disturbances.conditions = {.changes = {}, .jitter_ppm = 20'000, .seed = i};
      const JobReport report = run_checked(job, topology, disturbances, settings);
      const auto schedule =
          planners::plan_unbounded(topology, {CollectiveKind::all_reduce, 6, {}}, *planners::find_planner("ring"));
      ASSERT_TRUE(schedule);
      sim::Options options;
      options.size = {30'000};
      options.chunk = {1000};
      options.model = model;
      options.set({settings.endpoints, disturbances.conditions});
      const auto alone = sim::simulate(*schedule, topology, options, settings.endpoints.engines());
      ASSERT_TRUE(alone);
      EXPECT_EQ(report.elapsed, alone->elapsed);
      EXPECT_EQ(report.links, alone->links);
    }
  }
}

TEST(RunJob, ACallHasItsOwnChunks) {
  // Over two links of 1 GB/s and 1 us, handed on at r1: one chunk of 1,000 B takes 1 us per hop, ten overlap.
  Script script;
  const std::vector<Rank> all{Rank(0), Rank(1), Rank(2)};
  const auto broadcast = [&](std::int64_t chunk) {
    return script.job.add_call({.size = {1000},
                                .group = script.job.add_group(all),
                                .label = script.job.add_label("all"),
                                .planner = script.job.add_label("ring"),
                                .chunk = {chunk},
                                .root = Rank(0),
                                .kind = CollectiveKind::broadcast,
                                .element_size = 1});
  };
  const auto time_of = [&](std::int64_t chunk) {
    script = {};
    const CallId call = broadcast(chunk);
    for (std::uint32_t rank = 0; rank < 3; ++rank) script.part(rank, call);
    RunSettings settings;
    settings.chunk = {1000};
    const JobReport report = run_checked(script.job, test::ring(3), {}, settings);
    EXPECT_EQ(report.calls[0].alone, report.calls[0].duration());
    return report.elapsed.count;
  };
  EXPECT_EQ(time_of(0), time_of(1000));
  EXPECT_LT(time_of(100), time_of(1000));
}

TEST(RunJob, StragglersAreSlowAndLate) {
  Script script;
  script.compute(0, 10 * us);
  script.compute(1, 10 * us);
  Disturbances disturbances;
  disturbances.stragglers.push_back({.rank = Rank(1), .compute_ppm = 1'500'000, .start = {3 * us}});
  const JobReport report = run_checked(script.job, test::star(2), disturbances);
  EXPECT_EQ(report.tasks[0].end, 10 * us);
  EXPECT_EQ(report.tasks[1].start, 3 * us);
  EXPECT_EQ(report.tasks[1].end, 18 * us);
}

TEST(RunJob, JitterStaysInItsBoundsAndFollowsTheSeed) {
  Script script;
  for (int i = 0; i < 100; ++i) script.compute(0, us);
  Disturbances disturbances;
  disturbances.compute_jitter_ppm = 100'000;
  disturbances.seed = 5;
  const JobReport report = run_checked(script.job, test::star(2), disturbances);
  EXPECT_GT(report.elapsed.count, 102 * us);
  EXPECT_LT(report.elapsed.count, 108 * us);
  EXPECT_EQ(run_checked(script.job, test::star(2), disturbances).elapsed, report.elapsed);
  disturbances.seed = 6;
  EXPECT_NE(run_checked(script.job, test::star(2), disturbances).elapsed, report.elapsed);
}

TEST(RunJob, NamesTheCircleInWhichRanksWait) {
  Script script;
  const CallId a = script.message(0, 1, 8), b = script.message(1, 0, 8);
  script.part(0, a);
  script.part(0, b);
  script.part(1, b);
  script.part(1, a);
  const auto report = run_job(script.job, test::star(2), {}, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message,
            "the job is stuck: task 0 'message' of r0 is in call 0 'message' and waits for task 3 'message' of r1; "
            "task 2 'message' of r1 is in call 1 'message' and waits for task 1 'message' of r0");
}

Job reductions(std::size_t ranks, int times, std::int64_t bytes) {
  Script script;
  std::vector<Rank> members;
  for (std::size_t i = 0; i < ranks; ++i) members.emplace_back(i);
  for (int i = 0; i < times; ++i) {
    const CallId call = script.job.add_call(
        {.size = {bytes}, .group = script.job.add_group(members), .label = script.job.add_label("add")});
    for (std::uint32_t rank = 0; rank < ranks; ++rank) script.part(rank, call);
  }
  return script.job;
}

LinkId link_between(const Topology& topology, const char* name) { return topology.find_link(name); }

TEST(RunJob, NamesTheDeadLinkThatACallWaitsFor) {
  const Topology ring = test::ring(4);
  Disturbances disturbances;
  disturbances.conditions.changes.push_back({link_between(ring, "r0>r1"), {100 * us}, 0});
  const auto report = run_job(reductions(4, 1, 4'000'000), ring, disturbances, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message.substr(0, 63), "call 0 'add' cannot end: the link r0>r1 is dead since 100 us, a");
}

TEST(RunJob, PlansAroundALinkThatDies) {
  const Topology ring = test::ring(4);
  Disturbances disturbances;
  disturbances.conditions.changes.push_back({link_between(ring, "r0>r1"), {100 * us}, 0});
  disturbances.detection = Picoseconds{50 * us};
  const JobReport report = run_checked(reductions(4, 3, 4'000'000), ring, disturbances);
  ASSERT_EQ(report.replannings.size(), 1U);
  EXPECT_EQ(report.replannings[0].time, 150 * us);
  EXPECT_EQ(report.replannings[0].restarted, 1U);
  EXPECT_EQ(report.calls[0].restarts, 1U);
  EXPECT_EQ(report.calls[1].restarts, 0U);
  const std::int64_t healthy = run_checked(reductions(4, 3, 4'000'000), ring).elapsed.count;
  EXPECT_GT(report.elapsed.count, healthy + 150 * us);
}

TEST(RunJob, ALinkThatComesBackInTimeIsNotNoticed) {
  const Topology ring = test::ring(4);
  Disturbances disturbances;
  const LinkId link = link_between(ring, "r0>r1");
  disturbances.conditions.changes = {{link, {100 * us}, 0}, {link, {140 * us}, 1'000'000}};
  disturbances.detection = Picoseconds{50 * us};
  const JobReport report = run_checked(reductions(4, 1, 4'000'000), ring, disturbances);
  EXPECT_TRUE(report.replannings.empty());
  const std::int64_t healthy = run_checked(reductions(4, 1, 4'000'000), ring).elapsed.count;
  EXPECT_GT(report.elapsed.count, healthy);
  EXPECT_LE(report.elapsed.count, healthy + 40 * us);
}

TEST(RunJob, BackgroundTrafficUsesItsShare) {
  Script script;
  script.compute(0, 100'000 * us);
  Disturbances disturbances;
  disturbances.background.push_back({.pairs = 1, .size = {10'000}, .load_ppm = 300'000, .ranks = {}});
  disturbances.seed = 3;
  const JobReport report = run_checked(script.job, test::star(2), disturbances);
  // 100 ms at 30 % of 1 GB/s are 3,000 flows of 10 us; their number deviates by about its root.
  EXPECT_NEAR(static_cast<double>(report.flows), 3000, 5 * 55);
  EXPECT_NEAR(busiest_links(report, 1).at(0).share, 0.3, 0.03);
}

TEST(RunJob, RefusesBackgroundThatPilesUp) {
  Script script;
  script.compute(0, 100'000'000 * us);
  Disturbances disturbances;
  disturbances.background.push_back({.pairs = 4, .size = {1'000}, .load_ppm = 1'000'000, .ranks = {}});
  const auto report = run_job(script.job, test::star(2), disturbances, {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::too_large);
}

TEST(RunJob, GroupsOfOneShapeShareTheirPlans) {
  Script script;
  for (std::uint32_t pair = 0; pair < 4; ++pair) {
    const GroupId group = script.job.add_group({Rank(2 * pair), Rank(2 * pair + 1)});
    const CallId call = script.job.add_call({.size = {4096}, .group = group, .label = script.job.add_label("add")});
    script.part(2 * pair, call);
    script.part(2 * pair + 1, call);
  }
  const JobReport report = run_checked(script.job, test::star(8));
  EXPECT_EQ(report.plans, 4U);
  EXPECT_EQ(report.shapes, 1U);
}

}  // namespace
}  // namespace espalier::scenario
