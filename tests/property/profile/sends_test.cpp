#include <algorithm>

#include "planners/planner.h"
#include "schedule/loads.h"
#include "tests/property/profile/machines.h"

namespace espalier::profile {
namespace {

TEST(Sends, AutoIsNeverSlowerThanNccl) {
  std::vector<planners::Planner> all(planners::nccl_planners().begin(), planners::nccl_planners().end());
  all.insert(all.end(), planners::all_planners().begin(), planners::all_planners().end());
  std::size_t compared = 0;
  for (const test::Machine& machine : test::machines()) {
    const Topology topology = test::read_machine(machine);
    const auto options = test::options_of(machine);
    for (const CollectiveKind kind :
         {CollectiveKind::all_to_all, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::send_recv}) {
      const auto candidates =
          planners::make_candidates(topology, test::on(topology, kind), all, {.paths = options.profile.paths});
      ASSERT_TRUE(candidates) << machine.name;
      forecast::ProfiledRuns runs(topology, *candidates, options);
      for (const Bytes size : {Bytes{64 << 10}, Bytes{4 << 20}, Bytes{1 << 30}}) {
        const auto nccl = runs.run("nccl", size), own = runs.run("auto", size);
        ASSERT_TRUE(nccl && own) << machine.name << " " << to_string(kind);
        // Within good_enough of the best it stops looking.
        EXPECT_LE(own->report.elapsed.seconds(), planners::good_enough * nccl->report.elapsed.seconds())
            << machine.name << " " << to_string(kind) << " " << size.count << ": " << own->candidate->planner << " and "
            << nccl->candidate->planner;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, test::machines().size() * 12);
}

/// What the fullest link takes of a byte, and what it would if every rank's ports shared all that it sends and gets.
TEST(Sends, NcclSpreadsThemOverParallelWays) {
  // Of 16 ranks in boxes of eight, a rank sends half of its blocks over four NICs, each on 12 GB/s of PCIe; of 16 ranks
  // on six planes it sends 15 of 16 blocks over six links of 25 GB/s.
  for (const auto& [name, seconds_per_byte] :
       {std::pair("aws-p5-x2", 8.0 / 16 / 48e9), std::pair("dgx2", 15.0 / 16 / 150e9)}) {
    const Topology topology = test::read_machine({name, "", 0});
    const planners::BundledNetwork network(topology, planners::Paths::software);
    const auto p2p = std::ranges::find(planners::nccl_planners(), "nccl/p2p", &planners::Planner::name);
    const auto schedule = plan_unbounded(network, test::on(topology, CollectiveKind::all_to_all), *p2p);
    ASSERT_TRUE(schedule) << name;
    EXPECT_NEAR(to_double(compute_loads(*schedule, topology).time_per_byte), seconds_per_byte, 0.01 * seconds_per_byte)
        << name;
  }
}

}  // namespace
}  // namespace espalier::profile
