// Times are worked out by hand: on the star every link carries 1 GB/s, so that a byte takes 1,000 ps, and a route of
// two links has 2 us of latency.

#include "scenario/report/job_path.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::us;

std::string text_of(const Job& job, const std::vector<JobStep>& path) {
  std::string text;
  for (const JobStep& step : path) {
    // Both ends of a message may end at once.
    const std::string rank = " r" + std::to_string(job.task(step.task).rank.value());
    text += (step.use == JobUse::call ? "in" : std::string(to_string(step.use))) + " " +
            job.label(job.task(step.task).label) + (step.use == JobUse::call ? "" : rank) + " " +
            std::to_string(step.begin / us) + "-" + std::to_string(step.end / us) + "; ";
  }
  return text;
}

std::string text_of(const std::vector<JobShare>& shares) {
  std::string text;
  for (const JobShare& share : shares) {
    text += share.text() + " " + std::to_string(share.time.count / us) + " (" + share.max_at + "); ";
  }
  return text;
}

TaskId add_part(Job& job, std::uint32_t rank, CallId call, std::uint16_t stream, std::span<const TaskId> after = {}) {
  return job.add_task(
      {.rank = Rank(rank), .call = call, .label = job.call(call).label, .stream = stream, .kind = TaskKind::call},
      after);
}

ExplainedJob explain_checked(const Job& job, const Topology& topology, const Disturbances& disturbances,
                             const RunSettings& settings) {
  const auto checked = check_job(job, topology);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  auto explained = explain_job(job, topology, disturbances, settings);
  EXPECT_TRUE(explained.has_value()) << explained.error().message;
  return explained ? *std::move(explained) : ExplainedJob();
}

TEST(JobPath, GoesThroughTheRankThatCameLast) {
  // r1 computes 7 us before it receives what r0 has ready at once; then it computes again.
  Job job;
  const CallId call = test::add_message(job, 0, 1, 1000);
  const LabelId work = job.add_label("work 1");
  add_part(job, 0, call, 1);
  const std::array first{job.add_task({.duration = 7 * us, .rank = Rank(1), .label = work}, {})};
  const std::array part{add_part(job, 1, call, 1, first)};
  job.add_task({.duration = 2 * us, .rank = Rank(1), .label = job.add_label("work 2")}, part);
  RunSettings settings;
  settings.endpoints.launch = {us};
  const Topology topology = test::star(2);
  const ExplainedJob explained = explain_checked(job, topology, {}, settings);
  EXPECT_EQ(text_of(job, explained.path.steps),
            "computing work 1 r1 0-7; launching message r1 7-8; in message 8-11; computing work 2 r1 11-13; ");
  const auto shares = divide_job_path(job, topology, explained.path);
  // 2 us of latency over two links, of which the first is the slowest, as fast as the second: the byte time is there.
  EXPECT_EQ(text_of(shares),
            "computing work 9 (r1); message: the latency of 1 GB/s 2 (hub>r1); launching message 1 (r1); "
            "message: moving over 1 GB/s 1 (hub>r1); ");
  EXPECT_TRUE(explained.path.waits.empty());
}

TEST(JobPath, NamesTheLinkWhereACallWaitsForAnother) {
  // Two messages of 10 us meet on the link into r2; r1 begins 3 us late, when the other has the link for 8 us more.
  Job job;
  const CallId first = test::add_message(job, 0, 2, 10'000);
  const CallId second = job.add_call({.size = {10'000},
                                      .group = job.add_group({Rank(1), Rank(2)}),
                                      .label = job.add_label("late one"),
                                      .planner = LabelId(),
                                      .root = Rank(0),
                                      .kind = CollectiveKind::broadcast,
                                      .element_size = 1});
  add_part(job, 0, first, 1);
  add_part(job, 1, second, 1);
  add_part(job, 2, first, 1);
  add_part(job, 2, second, 2);
  Disturbances disturbances;
  disturbances.stragglers.push_back({.rank = Rank(1), .start = {3 * us}});
  const Topology topology = test::star(3);
  RunSettings settings;
  settings.chunk = {10'000};
  // Whole messages, one after the other: the first has the link from 1 to 11 us, and the second, asking at 4, from 11.
  ExplainedJob explained = explain_checked(job, topology, disturbances, settings);
  EXPECT_EQ(text_of(job, explained.path.steps), "late: late one r1 0-3; in late one 3-22; ");
  EXPECT_EQ(text_of(divide_job_path(job, topology, explained.path)),
            "late one: moving over 1 GB/s 10 (hub>r2); late one: queueing for 1 GB/s 7 (hub>r2); "
            "late: late one 3 (r1); late one: the latency of 1 GB/s 2 (hub>r2); ");
  ASSERT_EQ(explained.path.waits.size(), 1U);
  const JobWait& wait = explained.path.waits.front();
  EXPECT_EQ(topology.link_name(wait.link), "hub>r2");
  EXPECT_EQ(job.label(wait.of), "late one");
  EXPECT_EQ(job.label(wait.behind), "message");
  EXPECT_EQ(wait.time.count, 7 * us);

  // Shared fairly, the first flows alone from 2 to 5 us, both at half until it has its other 7 us of bytes at 19; the
  // second has 3 us of bytes left then, of its 10: it took 17 from 5 to 22 for what takes 10 alone.
  settings.model = sim::ModelKind::fair;
  explained = explain_checked(job, topology, disturbances, settings);
  EXPECT_EQ(text_of(job, explained.path.steps), "late: late one r1 0-3; in late one 3-22; ");
  EXPECT_EQ(text_of(divide_job_path(job, topology, explained.path)),
            "late one: moving over 1 GB/s 10 (r1>hub); late one: sharing 1 GB/s 7 (hub>r2); "
            "late: late one 3 (r1); late one: the latency of 1 GB/s 2 (hub>r2); ");
  ASSERT_EQ(explained.path.waits.size(), 1U);
  EXPECT_EQ(job.label(explained.path.waits.front().behind), "message");
  EXPECT_EQ(explained.path.waits.front().time.count, 7 * us);
}

TEST(JobPath, SaysWhatADeadLinkCost) {
  // 20 us of bytes over one cable of a ring of three, which dies at 5 us and is noticed 4 us later; then two cables.
  Job job;
  const CallId call = test::add_message(job, 0, 1, 20'000);
  add_part(job, 0, call, 1);
  add_part(job, 1, call, 1);
  const Topology topology = test::ring(3);
  Disturbances disturbances;
  for (const char* link : {"r0>r1", "r1>r0"}) {
    disturbances.conditions.changes.push_back({topology.find_link(link), {5 * us}, 0});
  }
  disturbances.detection = Picoseconds{4 * us};
  RunSettings settings;
  settings.chunk = {20'000};
  settings.endpoints.launch = {us};
  for (const sim::ModelKind model : sim::all_models) {
    settings.model = model;
    const ExplainedJob explained = explain_checked(job, topology, disturbances, settings);
    const std::string text = text_of(job, explained.path.steps);
    EXPECT_TRUE(
        text.starts_with("launching message r0 0-1; given up: message r0 1-5; "
                         "noticing a dead link: message r0 5-9; launching message r0 9-10; "
                         "in message 10-"))
        << text;
    EXPECT_EQ(explained.path.steps.back().end, explained.report.elapsed.count);
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
  EXPECT_EQ(with("half the latency of 1 GB/s (4 links)"), (6 + 3 + 1 + 4) * us);
  EXPECT_TRUE(limits->full.empty());
}

}  // namespace
}  // namespace espalier::scenario
