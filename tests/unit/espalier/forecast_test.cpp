#include "espalier/forecast.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "espalier/literals.h"
#include "espalier/planner.h"
#include "espalier/schedule.h"
#include "espalier/shipped.h"
#include "espalier/simulate.h"
#include "espalier/software.h"
#include "espalier/value.h"
#include "forecast/answer.h"

namespace espalier {
namespace {

using namespace literals;

/// A program in a folder of its own finds what ships by the environment.
const bool is_told = setenv("ESPALIER_CONFIGS", ESPALIER_SOURCE_DIR "/configs", 1) == 0;

TEST(Forecast, SaysWhatTheCommandSays) {
  for (const char* const name : {"dgx1v-degraded", "dgx-h100", "rtx4090-pcie"}) {
    for (const std::string profile : {"", "ideal"}) {
      const Machine machine = value(read_machine(name));
      const Forecast forecast = value(Forecast::make(machine, "all_gather", {.profile = profile}));
      forecast::RunOptions how;
      if (profile.empty()) {
        ASSERT_FALSE(machine.profile.empty());
        how.profile = std::make_shared<const forecast::Software>(value(read_software(machine.profile)));
      }
      const Collective collective =
          value(make_collective(CollectiveKind::all_gather, machine.topology.rank_count(), {}));
      const auto candidates =
          value(forecast::plan({.machine = &machine.topology, .collective = collective, .how = how}));
      forecast::CandidateRuns runs(machine.topology, candidates, how);
      for (const Bytes size : {8_KiB, 1_MiB, 256_MiB}) {
        const Prediction best = value(forecast.best(size));
        const auto run = value(runs.run("auto", size));
        EXPECT_EQ(best.seconds, run.report.elapsed.seconds()) << name;
        EXPECT_EQ(best.algorithm, run.by());
        EXPECT_LE(best.of_bound, 1);
        EXPECT_NEAR(best.busbw / forecast.busbw_limit(), best.of_bound, 1e-9);
      }
    }
  }
}

TEST(Forecast, PlansWhatItForetells) {
  const Forecast forecast = value(Forecast::make(value(read_machine("dgx1v")), "all_gather", {.profile = "ideal"}));
  const Prediction best = value(forecast.best(64_MiB));
  const Schedule plan = value(forecast.plan(64_MiB));
  EXPECT_TRUE(verify(plan, forecast.topology()).ok());
  ASSERT_TRUE(plan.pacing);
  const auto run = value(sim::simulate(plan, forecast.topology(),
                                       {.size = 64_MiB, .chunk = plan.pacing->chunk, .ahead = plan.pacing->ahead}));
  EXPECT_EQ(run.elapsed.seconds(), best.seconds);
}

TEST(Forecast, AnswersForPlansThatOneRanksPartStandsFor) {
  const Machine machine = value(read_machine(ESPALIER_SOURCE_DIR "/examples/dgx-h100-x2048.yaml"));
  const Forecast forecast =
      value(Forecast::make(machine, "all_gather", {.algorithms = {"packing"}, .profile = "ideal"}));
  EXPECT_GT(value(forecast.best(1_GiB)).of_bound, 0.9);
}

TEST(Forecast, SeveralAlgorithmsAreHeldAgainstEachOther) {
  const Forecast forecast = value(Forecast::make(value(read_machine("dgx1v")), "all_reduce",
                                                 {.algorithms = {"ring", "tree", "pairwise"}, .profile = "ideal"}));
  EXPECT_EQ(forecast.algorithms(), (std::vector<std::string>{"ring", "tree"}));
  const Prediction ring = value(forecast.predict("ring", 1_GiB)), tree = value(forecast.predict("tree", 1_GiB));
  EXPECT_EQ(value(forecast.best(1_GiB)).seconds, std::min(ring.seconds, tree.seconds));
}

TEST(Forecast, SaysWhatIsWrong) {
  const Machine machine = value(read_machine("dgx1v"));
  EXPECT_EQ(Forecast::make(machine, "all_redce").error().help, "did you mean 'all_reduce'?");
  EXPECT_FALSE(Forecast::make(machine, "all_reduce", {.algorithms = {"rong"}}));
  EXPECT_FALSE(Forecast::make(machine, "all_reduce", {.algorithms = {}}));
  EXPECT_FALSE(Forecast::make(machine, "all_reduce", {.element_size = 0}));
  EXPECT_FALSE(Forecast::make(machine, "all_reduce", {.root = Rank(1)}));
  EXPECT_FALSE(Forecast::make(machine, "broadcast", {.root = Rank(8)}));
  EXPECT_EQ(Forecast::make(machine, "all_reduce", {.profile = "nccl-hoper"}).error().help,
            "did you mean 'nccl-hopper'?");
  EXPECT_FALSE(Forecast::make(machine, "all_reduce", {.algorithms = {"nccl"}, .profile = "ideal"}));
  const Forecast forecast = value(Forecast::make(machine, "all_reduce", {.algorithms = {"nccl"}}));
  EXPECT_FALSE(forecast.predict("ring", 1_MiB));
  EXPECT_FALSE(forecast.best({-1}));
  EXPECT_FALSE(forecast.best({max_message_size.count + 1}));
  EXPECT_EQ(forecast.plan(1_MiB).error().code, ErrorCode::unsupported);
}

/// The rings are the same, and each carries the message once: what a fit to one table says of one of the collectives,
/// or of one machine, must not make the others another kind.
TEST(Forecast, NcclsRingsCarryLargeMessagesAlikeOverMachines) {
  for (const char* const name : {"dgx-a100-x2", "aws-p5-x2", "dgx-h100-x4", "dgx-b200-cluster"}) {
    const Machine machine = value(read_machine(name));
    const auto busbw = [&](const char* collective, Bytes size) {
      const auto forecast = value(Forecast::make(machine, collective, {.algorithms = {"nccl"}}));
      return value(forecast.predict("nccl", size)).busbw;
    };
    const double gathered = busbw("all_gather", 1_GiB);
    for (const char* const collective : {"broadcast", "reduce", "reduce_scatter", "all_reduce"}) {
      EXPECT_GT(busbw(collective, 1_GiB), 0.75 * gathered) << name << " " << collective;
    }
    EXPECT_GT(busbw("send_recv", 16_MiB), 0.75 * busbw("send_recv", 1_GiB)) << name;
  }
}

TEST(ReadMachine, NamesThePlaceOfAFault) {
  EXPECT_EQ(read_machine("dgx1w").error().help, "did you mean 'dgx1v'?");
  const std::string path = ::testing::TempDir() + "bad_machine.yaml";
  std::ofstream(path) << "espalier: 1\nname: bad\nnodes: 3\n";
  const auto bad = read_machine(path);
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with(path + ":3:")) << bad.error().message;
  EXPECT_EQ(value(read_machine("dgx-a100-x16", {{"boxes", "3"}})).topology.rank_count(), 24U);
}

TEST(Literals, AreExact) {
  EXPECT_EQ(1_GiB, Bytes{1 << 30});
  EXPECT_EQ(3_B, Bytes{3});
  EXPECT_EQ(400_Gbps, 50_GBps);
}

}  // namespace
}  // namespace espalier
