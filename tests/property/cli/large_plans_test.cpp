#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verbs/commands.h"
#include "forecast/entrants.h"
#include "planners/planner.h"
#include "tests/property/cli/printed.h"
#include "topology/generate/generate.h"
#include "topology/without.h"

// Plans of machines past 2,048 ranks are never stored: one rank's part stands for all, or rings are walked.

namespace espalier::cli {
namespace {

struct Asked {
  const char* collective;
  const char* size;
  const char* boxes;  ///< Of each unit of a machine with 64 units.
};

constexpr const char* few = "boxes_per_unit=5";  ///< 2,560 ranks.
constexpr const char* all = "boxes_per_unit=32";

class LargePlans : public ::testing::TestWithParam<Asked> {};

/// A candidate of which one rank's part stands for all may be given up for a faster one, as any other.
TEST_P(LargePlans, AreChosenWhateverIsGivenUp) {
  for (const char* algorithm : {"auto", "ring,tree", "tree"}) {
    const Printed printed = print_of(
        add_plan_command, {"plan", ESPALIER_SOURCE_DIR "/examples/dgx-h100-x2048.yaml", GetParam().collective, "-p",
                           GetParam().boxes, "-s", GetParam().size, "-a", algorithm, "--profile", "ideal"});
    EXPECT_EQ(printed.code, ExitCode::ok) << algorithm << ": " << printed.text;
    EXPECT_NE(printed.text.find("\"chosen\""), std::string::npos) << algorithm << ": " << printed.text;
  }
}

std::string name_of(const ::testing::TestParamInfo<Asked>& asked) {
  return std::string(asked.param.collective) + asked.param.size;
}

INSTANTIATE_TEST_SUITE_P(Asked, LargePlans,
                         ::testing::Values(Asked{"all_reduce", "1M", few}, Asked{"all_reduce", "256M", few},
                                           Asked{"all_reduce", "4G", few}, Asked{"reduce_scatter", "256M", few},
                                           Asked{"all_gather", "1G", few}),
                         name_of);
// Takes minutes.
INSTANTIATE_TEST_SUITE_P(Of16384Ranks, LargePlans,
                         ::testing::Values(Asked{"all_reduce", "1M", all}, Asked{"all_reduce", "256M", all},
                                           Asked{"all_reduce", "4G", all}, Asked{"reduce_scatter", "256M", all},
                                           Asked{"all_gather", "1G", all}),
                         name_of);

/// NCCL's rings and trees of large machines too; without a NIC they take longer, as those of any machine.
TEST(LargeNccl, TakesLongerWithoutANic) {
  const std::string machine = ::testing::TempDir() + "large_nccl.yaml";
  ASSERT_EQ(print_of(add_topo_command, {"topo", "gen", "rail-boxes", "--boxes", "264", "-o", machine}).code,
            ExitCode::ok);
  for (const char* collective : {"all_gather", "all_reduce"}) {  // by rings, by trees
    SCOPED_TRACE(collective);
    const auto seconds = [&](std::vector<std::string> more) {
      std::vector<std::string> asked{"simulate", machine,     collective,
                                     "-s",       "64M",       "-a",
                                     "nccl",     "--profile", ESPALIER_SOURCE_DIR "/configs/profiles/nccl-hopper.yaml"};
      asked.insert(asked.end(), more.begin(), more.end());
      const Printed printed = print_of(add_simulate_command, asked);
      EXPECT_EQ(printed.code, ExitCode::ok) << printed.errors;
      return nlohmann::json::parse(printed.text)["results"][0]["time"].get<double>();
    };
    const double whole = seconds({}), damaged = seconds({"--without", "box3.nic2"});
    EXPECT_GT(damaged, whole);
    EXPECT_LT(damaged, 1.5 * whole);
  }
  const Printed explained = print_of(
      add_explain_command, {"explain", machine, "all_gather", "-s", "1M", "-a", "nccl/ring", "--without", "box3.nic2",
                            "--profile", ESPALIER_SOURCE_DIR "/configs/profiles/nccl-hopper.yaml"});
  EXPECT_EQ(explained.code, ExitCode::ok) << explained.errors;
}

/// In whatever form a plan is there, a run with a deadline is the run without one, or nothing where it is later.
TEST(DeadlineOfCandidates, IsKeptInEveryForm) {
  const Topology whole = *generate_rail_boxes({.boxes = 257});
  const Collective collective = *make_collective(CollectiveKind::all_reduce, whole.rank_count(), std::nullopt);
  planners::CandidateOptions options;
  options.may_be_unstored = true;
  const auto candidates = planners::make_candidates(whole, collective, planners::all_planners(), options);
  ASSERT_TRUE(candidates) << candidates.error().message;
  int late = 0, symmetric = 0;
  for (const planners::Candidate& candidate : candidates->made) {
    SCOPED_TRACE(candidate.planner);
    const auto simulator = forecast::CandidateSimulator::make(candidate, whole, {});
    if (!simulator) continue;
    sim::Options how;
    how.size = {256 << 20};
    how.set({candidate.chunks.choose(how.size), 0});
    const auto run = simulator->run(how);
    ASSERT_TRUE(run) << run.error().message;
    symmetric += candidate.symmetric != nullptr ? 1 : 0;
    for (const std::int64_t percent : {0, 50, 99, 100, 101}) {
      const Picoseconds deadline{run->elapsed.count / 100 * percent + (percent == 100 ? run->elapsed.count % 100 : 0)};
      const auto until = simulator->run_until(how, deadline);
      ASSERT_TRUE(until) << until.error().message;
      if (*until) {
        EXPECT_EQ((*until)->elapsed, run->elapsed);
        EXPECT_EQ((*until)->links, run->links);
      } else {
        EXPECT_LT(deadline, run->elapsed);
        ++late;
      }
    }
  }
  EXPECT_GE(symmetric, 2);
  EXPECT_GT(late, 0);
}

}  // namespace
}  // namespace espalier::cli
