// Times are worked out by hand: on the star every link carries 1 GB/s, so that a byte takes 1,000 ps, and a route of
// two links has 2 us of latency.

#include "scenario/job_path.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::run_checked;
using test::us;

std::string text_of(const Job& job, const std::vector<JobStep>& path) {
  std::string text;
  for (const JobStep& step : path) {
    text += std::string(to_string(step.use)) + " " + job.label(job.task(step.task).label) + " r" +
            std::to_string(job.task(step.task).rank.value()) + " " + std::to_string(step.begin / us) + "-" +
            std::to_string(step.end / us) + "; ";
  }
  return text;
}

TEST(JobPath, GoesThroughTheRankThatCameLast) {
  // r1 computes 7 us before it receives what r0 has ready at once; then it computes again.
  Job job;
  const CallId call = test::add_message(job, 0, 1, 1000);
  const LabelId work = job.add_label("work 1");
  job.add_task({.rank = Rank(0), .call = call, .label = LabelId(0), .stream = 1, .kind = TaskKind::call}, {});
  const std::array first{job.add_task({.duration = 7 * us, .rank = Rank(1), .label = work}, {})};
  const std::array part{
      job.add_task({.rank = Rank(1), .call = call, .label = LabelId(0), .stream = 1, .kind = TaskKind::call}, first)};
  job.add_task({.duration = 2 * us, .rank = Rank(1), .label = job.add_label("work 2")}, part);
  RunSettings settings;
  settings.endpoints.launch = {us};
  const JobReport report = run_checked(job, test::star(2), {}, settings);
  const auto path = find_job_path(job, settings.endpoints.launch, report);
  EXPECT_EQ(text_of(job, path),
            "computing work 1 r1 0-7; launching message r1 7-8; moving message r1 8-11; computing work 2 r1 11-13; ");
  const auto shares = divide_job_path(job, path);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_EQ(shares[0].what, "work");  // without its number
  EXPECT_EQ(shares[0].time.count, 9 * us);
  EXPECT_EQ(shares[0].most_at, Rank(1));
}

TEST(JobPath, SaysWhatOthersCostAndWhoWasLate) {
  // Two messages meet on the link into r2; r1 begins 3 us late.
  Job job;
  const CallId first = test::add_message(job, 0, 2, 10'000), second = test::add_message(job, 1, 2, 10'000);
  const auto part = [&](std::uint32_t rank, CallId call, std::uint16_t stream) {
    job.add_task({.rank = Rank(rank), .call = call, .label = LabelId(0), .stream = stream, .kind = TaskKind::call}, {});
  };
  part(0, first, 1);
  part(1, second, 1);
  part(2, first, 1);
  part(2, second, 2);
  RunSettings settings;
  settings.chunk = {1000};
  Disturbances disturbances;
  disturbances.stragglers.push_back({.rank = Rank(1), .start = {3 * us}});
  const JobReport report = run_checked(job, test::star(3), disturbances, settings);
  const auto path = find_job_path(job, {}, report);
  ASSERT_EQ(path.size(), 3U);
  EXPECT_EQ(path[0].use, JobUse::late);
  EXPECT_EQ(path[0].end, 3 * us);
  EXPECT_EQ(path[1].use, JobUse::moving);
  EXPECT_EQ(path[1].end - path[1].begin, 12 * us);
  EXPECT_EQ(path[2].use, JobUse::slowed);
  EXPECT_EQ(path[2].end, report.elapsed.count);
}

/// Random jobs: the steps follow each other from 0 to the end without gaps, whatever is in the way.
TEST(JobPath, AddsUpToTheTotal) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Job job;
    const std::uint32_t ranks = 2 + static_cast<std::uint32_t>(random.below(4));
    std::vector<std::vector<TaskId>> of_rank(ranks);
    const auto add = [&](std::uint32_t rank, Task task) {
      std::vector<TaskId> after;
      if (!of_rank[rank].empty() && random.below(4) > 0) after.push_back(of_rank[rank].back());
      task.rank = Rank(rank);
      of_rank[rank].push_back(job.add_task(task, after));
    };
    for (std::uint64_t i = 3 + random.below(20); i > 0; --i) {
      const auto rank = static_cast<std::uint32_t>(random.below(ranks));
      if (random.below(2) == 0) {
        add(rank, {.duration = random.between(0, 9) * us, .label = job.add_label("work")});
        continue;
      }
      const auto other = static_cast<std::uint32_t>((rank + 1 + random.below(ranks - 1)) % ranks);
      const CallId call = test::add_message(job, rank, other, random.between(0, 9) * 1000);
      // A stream of its own, so that no rank waits in a circle.
      const auto stream = static_cast<std::uint16_t>(10 + call.value());
      const Task part{.call = call, .label = job.call(call).label, .stream = stream, .kind = TaskKind::call};
      add(rank, part);
      add(other, part);
    }
    Disturbances disturbances;
    disturbances.compute_jitter_ppm = random.below(2) == 0 ? 0 : 300'000;
    disturbances.conditions.jitter_ppm = random.below(2) == 0 ? 0 : 300'000;
    if (random.below(3) == 0) disturbances.stragglers.push_back({.rank = Rank(0), .start = {5 * us}});
    RunSettings settings;
    settings.model = random.below(2) == 0 ? sim::ModelKind::link : sim::ModelKind::fair;
    settings.endpoints.launch = {random.below(2) == 0 ? 0 : us};
    const JobReport report = run_checked(job, test::star(ranks), disturbances, settings);
    const auto path = find_job_path(job, settings.endpoints.launch, report);
    std::int64_t at = 0;
    for (const JobStep& step : path) {
      EXPECT_EQ(step.begin, at) << "round " << round;
      EXPECT_LT(step.begin, step.end);
      // Only a straggler may be late.
      EXPECT_TRUE(step.use != JobUse::late || !disturbances.stragglers.empty()) << "round " << round;
      at = step.end;
    }
    EXPECT_EQ(at, report.elapsed.count) << "round " << round;
    std::int64_t sum = 0;
    for (const JobShare& share : divide_job_path(job, path)) sum += share.time.count;
    EXPECT_EQ(sum, report.elapsed.count);
  }
}

TEST(JobLimits, TriesWhatMayHelp) {
  Job job;
  const std::array work{job.add_task({.duration = 6 * us, .rank = Rank(0), .label = job.add_label("work")}, {})};
  const CallId call = test::add_message(job, 0, 1, 4000);
  job.add_task({.rank = Rank(0), .call = call, .label = job.call(call).label, .stream = 1, .kind = TaskKind::call},
               work);
  job.add_task({.rank = Rank(1), .call = call, .label = job.call(call).label, .stream = 1, .kind = TaskKind::call}, {});
  RunSettings settings;
  settings.endpoints.launch = {3 * us};
  const auto limits = find_job_limits(job, test::star(2), {}, settings);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->report.elapsed.count, (6 + 3 + 2 + 4) * us);
  const auto with = [&](const std::string& change) {
    const auto at = std::ranges::find(limits->improvements, change, &JobImprovement::change);
    return at == limits->improvements.end() ? -1 : at->elapsed.count;
  };
  EXPECT_EQ(with("computing twice as fast"), (3 + 3 + 2 + 4) * us);
  EXPECT_EQ(with("no launch cost"), (6 + 2 + 4) * us);
  EXPECT_EQ(with("twice the bandwidth of 1 GB/s (4 links)"), (6 + 3 + 2 + 2) * us);
  EXPECT_EQ(with("half of all latencies (4 links)"), (6 + 3 + 1 + 4) * us);
  EXPECT_TRUE(limits->full.empty());
}

}  // namespace
}  // namespace espalier::scenario
