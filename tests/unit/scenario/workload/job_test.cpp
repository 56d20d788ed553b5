#include "scenario/workload/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

/// Two ranks that compute and then add.
Job make_pair_job() {
  Job job;
  const LabelId label = job.add_label("add");
  const CallId call = job.add_call({.size = {1024}, .group = job.add_group({Rank(1), Rank(0)}), .label = label});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::array before{job.add_task({.duration = 10, .rank = Rank(rank), .label = label}, {})};
    job.add_task({.rank = Rank(rank), .call = call, .label = label, .stream = 1, .kind = TaskKind::call}, before);
  }
  return job;
}

std::string error_of(const Job& job) {
  const auto checked = check_job(job, test::star(3));
  return checked ? "" : checked.error().message;
}

TEST(Job, AcceptsWhatCanRun) { EXPECT_EQ(error_of(make_pair_job()), ""); }

TEST(Job, NumbersGroupsByTheirRanksOnce) {
  Job job;
  EXPECT_EQ(job.add_group({Rank(2), Rank(0)}), job.add_group({Rank(0), Rank(2)}));
  EXPECT_NE(job.add_group({Rank(2)}), job.add_group({Rank(0)}));
  EXPECT_EQ(job.rank_in(GroupId(0), Rank(2)), Rank(1));
  EXPECT_TRUE(job.rank_in(GroupId(0), Rank(1)).is_none());
}

TEST(Job, FindsRanksOfGroupsHoweverTheyAreSpaced) {
  Job job;
  for (const std::vector<std::uint32_t>& members :
       {std::vector<std::uint32_t>{7}, {0, 1, 2, 3}, {3, 11, 19, 27, 35}, {0, 1, 2, 30}, {0, 28, 29, 30, 31}, {5, 6}}) {
    std::vector<Rank> ranks;
    for (const std::uint32_t member : members) ranks.emplace_back(member);
    const GroupId group = job.add_group(ranks);
    for (std::uint32_t rank = 0; rank < 40; ++rank) {
      const auto at = std::ranges::find(members, rank);
      const Rank expected = at == members.end() ? Rank() : Rank(static_cast<std::size_t>(at - members.begin()));
      EXPECT_EQ(job.rank_in(group, Rank(rank)), expected) << rank;
    }
  }
}

TEST(Job, RefusesARankThatTakesPartTwice) {
  Job job = make_pair_job();
  const LabelId label = job.add_label("again");
  job.add_task({.rank = Rank(1), .call = CallId(0), .label = label, .kind = TaskKind::call}, {});
  EXPECT_EQ(error_of(job), "task 4 'again' of r1 takes part a second time in call 0 'add'");
}

TEST(Job, RefusesARankThatNeverTakesPart) {
  Job job = make_pair_job();
  job.add_call({.size = {4}, .group = job.add_group({Rank(0), Rank(2)}), .label = job.add_label("lonely")});
  EXPECT_EQ(error_of(job), "r0 never takes part in call 1 'lonely' of its group");
}

TEST(Job, RefusesStrangersToAGroup) {
  Job job = make_pair_job();
  job.add_task({.rank = Rank(2), .call = CallId(0), .label = LabelId(0), .kind = TaskKind::call}, {});
  EXPECT_EQ(error_of(job), "task 4 'add' of r2 takes part in call 0 'add', whose group it is not in");
}

TEST(Job, RefusesTasksThatWaitForThemselves) {
  Job job;
  const LabelId label = job.add_label("turn");
  const std::array second{TaskId(1)}, first{TaskId(0)};
  job.add_task({.rank = Rank(0), .label = label}, second);
  job.add_task({.rank = Rank(0), .label = label}, first);
  EXPECT_NE(error_of(job).find("waits for itself"), std::string::npos);
}

TEST(Job, RefusesWaitingForOtherRanks) {
  Job job;
  const LabelId label = job.add_label("work");
  const std::array before{job.add_task({.rank = Rank(0), .label = label}, {})};
  job.add_task({.rank = Rank(1), .label = label}, before);
  EXPECT_EQ(error_of(job), "task 1 'work' of r1 waits for task 0 'work' of r0");
}

TEST(Job, RefusesSizesOfBrokenElements) {
  Job job = make_pair_job();
  job.add_call({.size = {6}, .group = GroupId(0), .label = LabelId(0)});
  EXPECT_EQ(error_of(job), "call 1 'add' has a size of 6 bytes with elements of 4");
}

}  // namespace
}  // namespace espalier::scenario
