#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "scenario/report/job_path.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::us;

/// Random tasks, messages and collectives of all ranks, each call on a stream of its own, so that no rank waits in a
/// circle.
Job make_job(Random& random, std::uint32_t ranks) {
  Job job;
  std::vector<std::vector<TaskId>> of_rank(ranks);
  const auto add = [&](std::uint32_t rank, Task task) {
    std::vector<TaskId> after;
    if (!of_rank[rank].empty() && random.below(4) > 0) after.push_back(of_rank[rank].back());
    task.rank = Rank(rank);
    of_rank[rank].push_back(job.add_task(task, after));
  };
  std::vector<Rank> all;
  for (std::uint32_t i = 0; i < ranks; ++i) all.emplace_back(i);
  for (std::uint64_t i = 3 + random.below(12); i > 0; --i) {
    const auto rank = static_cast<std::uint32_t>(random.below(ranks));
    const std::uint64_t what = random.below(4);
    if (what == 0) {
      const TaskKind kind = random.below(4) == 0 ? TaskKind::wait : TaskKind::compute;
      add(rank, {.duration = random.between(0, 9) * us, .label = job.add_label("work"), .kind = kind});
      continue;
    }
    CallId call;
    const auto other = static_cast<std::uint32_t>((rank + 1 + random.below(ranks - 1)) % ranks);
    if (what == 1) {
      call = test::add_message(job, rank, other, random.between(0, 9) * 1000);
    } else {
      const bool gathers = random.below(2) == 0;
      call = job.add_call({.size = {ranks * random.between(0, 3000)},
                           .group = job.add_group(all),
                           .label = job.add_label(gathers ? "gather" : "reduce"),
                           .planner = LabelId(),
                           .kind = gathers ? CollectiveKind::all_gather : CollectiveKind::all_reduce,
                           .element_size = 1});
    }
    const Task part{.call = call,
                    .label = job.call(call).label,
                    .stream = static_cast<std::uint16_t>(10 + call.value()),
                    .kind = TaskKind::call};
    for (std::uint32_t i2 = 0; i2 < ranks; ++i2) {
      if (what > 1 || i2 == rank || i2 == other) add(i2, part);
    }
  }
  return job;
}

/// Others' traffic goes on while a job is stuck, so there is none where links die without a way round.
Disturbances draw_disturbances(Random& random, const Topology& topology, bool has_detours) {
  Disturbances disturbances;
  disturbances.seed = random.below(100);
  disturbances.compute_jitter_ppm = random.below(2) == 0 ? 0 : 300'000;
  disturbances.conditions.jitter_ppm = random.below(2) == 0 ? 0 : 300'000;
  disturbances.conditions.seed = disturbances.seed;
  if (random.below(3) == 0) disturbances.stragglers.push_back({.rank = Rank(0), .start = {5 * us}});
  if (random.below(3) == 0) disturbances.background.push_back({.pairs = 2, .size = {3000}, .load_ppm = 300'000});
  if (random.below(2) == 0 && (has_detours || disturbances.background.empty())) {
    // Both ways of a cable die, for good or for a while, or are slow.
    const auto cable = static_cast<std::size_t>(random.below(topology.link_count() / 2));
    const std::int64_t at = random.between(0, 30) * us;
    const std::int32_t rate = random.below(3) == 0 ? 250'000 : 0;
    for (const std::size_t way : {2 * cable, 2 * cable + 1}) {
      disturbances.conditions.changes.push_back({LinkId(way), {at}, rate});
      if (random.below(2) == 0) {
        disturbances.conditions.changes.push_back({LinkId(way), {at + random.between(1, 20) * us}, 1'000'000});
      }
    }
    disturbances.detection = Picoseconds{random.between(0, 6) * us};
  }
  return disturbances;
}

RunSettings draw_settings(Random& random) {
  RunSettings settings;
  settings.model = random.below(2) == 0 ? sim::ModelKind::link : sim::ModelKind::fair;
  settings.endpoints.launch = {random.below(2) == 0 ? 0 : us};
  settings.endpoints.payload_ppm = random.below(3) == 0 ? 500'000 : 1'000'000;
  settings.endpoints.copy_engines = random.below(3) == 0 ? 1 : 0;
  if (random.below(2) == 0) settings.chunk = {random.between(200, 4000)};
  return settings;
}

/// The way of a rank through a call: gapless from end to end, and in pieces that add up.
void expect_adds_up(const sim::CriticalPath& path, const JobStep& step) {
  EXPECT_EQ(path.begin, step.begin);
  EXPECT_EQ(path.end, step.end);
  std::int64_t at = path.begin;
  for (const sim::CriticalStep& link : path.steps) {
    EXPECT_EQ(link.begin.count, at);
    at = link.end.count;
  }
  EXPECT_EQ(at, path.end);
  std::int64_t sum = 0;
  for (const sim::PathPart& part : path.parts) {
    EXPECT_GT(part.time.count, 0);
    EXPECT_NE(part.link.is_none(), part.node.is_none());
    sum += part.time.count;
  }
  EXPECT_EQ(sum, path.end - path.begin);
}

TEST(ExplainJobProperty, ContributionsAddUpToTheTotal) {
  Random random(5);
  int explained_jobs = 0, begun_again = 0, waited = 0, slowed = 0;
  for (int round = 0; round < 1200; ++round) {
    const auto ranks = static_cast<std::uint32_t>(3 + random.below(3));
    const bool has_detours = random.below(2) == 0;
    const Topology topology = has_detours ? test::ring(ranks) : test::star(ranks);
    const Job job = make_job(random, ranks);
    const Disturbances disturbances = draw_disturbances(random, topology, has_detours);
    const RunSettings settings = draw_settings(random);
    ASSERT_TRUE(check_job(job, topology)) << "round " << round;
    const auto explained = explain_job(job, topology, disturbances, settings);
    if (!explained) {  // no way is left, or nobody notices
      EXPECT_FALSE(disturbances.conditions.changes.empty()) << explained.error().message;
      continue;
    }
    ++explained_jobs;
    const auto plain = run_job(job, topology, disturbances, settings);
    ASSERT_TRUE(plain);
    EXPECT_EQ(explained->report.tasks.back().end, plain->tasks.back().end);
    EXPECT_EQ(explained->report.elapsed, plain->elapsed);
    std::int64_t at = 0;
    for (const JobStep& step : explained->path.steps) {
      EXPECT_EQ(step.begin, at) << "round " << round;
      EXPECT_LT(step.begin, step.end);
      // Only a straggler may be late.
      EXPECT_TRUE(step.use != JobUse::late || !disturbances.stragglers.empty()) << "round " << round;
      begun_again += step.use == JobUse::lost || step.use == JobUse::noticing ? 1 : 0;
      if (step.use == JobUse::call) expect_adds_up(explained->path.calls.at(step.part), step);
      at = step.end;
    }
    EXPECT_EQ(at, explained->report.elapsed.count) << "round " << round;
    std::int64_t sum = 0, waits = 0, explained_waits = 0;
    for (const JobShare& share : divide_job_path(job, topology, explained->path)) {
      sum += share.time.count;
      if (share.use != JobUse::call) continue;
      if (share.inside == sim::PathUse::queueing || share.inside == sim::PathUse::sharing) waits += share.time.count;
      slowed += share.inside == sim::PathUse::slowed ? 1 : 0;
      EXPECT_TRUE(share.inside != sim::PathUse::slowed || is_disturbed(disturbances.conditions)) << "round " << round;
    }
    EXPECT_EQ(sum, explained->report.elapsed.count) << "round " << round;
    for (const JobWait& wait : explained->path.waits) explained_waits += wait.time.count;
    EXPECT_LE(explained_waits, waits) << "round " << round;
    waited += explained_waits > 0 ? 1 : 0;
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(explained_jobs, 900);
  EXPECT_GT(begun_again, 20);
  EXPECT_GT(waited, 200);
  EXPECT_GT(slowed, 200);
}

}  // namespace
}  // namespace espalier::scenario
