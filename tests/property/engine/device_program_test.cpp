// Random schedules on random networks, as device programs: verified, and run on threads with the right result.
#include "engine/cuda/device_program.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/device_program_case.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/random/random_schedule.h"

namespace espalier::engine::cuda {
namespace {

TEST(RandomDevicePrograms, GiveTheCollectivesResult) {
  Random random(17);
  int runs = 0;
  for (int trial = 0; trial < 120; ++trial) {
    const auto topology = test::make_topology(test::random_graph(random, {}));
    const CollectiveKind kind = all_collective_kinds[random.below(all_collective_kinds.size())];
    const auto schedule = test::random_schedule(random, kind, topology);
    if (!schedule) continue;
    ++runs;
    const DataCase data{kind,
                        all_element_types[random.below(all_element_types.size())],
                        all_reduce_operations[random.below(all_reduce_operations.size())],
                        schedule->collective.rank_count,
                        has_root(kind) ? schedule->collective.root.value() : 0,
                        random.below(700),
                        random.next(),
                        schedule->collective.shares};
    BlockOptions options{.streams_per_pair = static_cast<std::uint32_t>(random.between(1, 3)),
                         .blocks_per_rank = static_cast<std::uint32_t>(random.between(1, 6)),
                         .blocks_per_stream = static_cast<std::uint32_t>(random.between(1, 4)),
                         .forwards = random.below(3) != 0,
                         .low_latency = random.below(3) == 0};
    if (!options.low_latency && random.below(2) == 0) {  // On two machines.
      for (std::uint32_t rank = 0; rank < data.ranks; ++rank) options.in_kernel.push_back(random.below(3) != 0);
    }
    test::run_device_case(*schedule, data, Bytes{random.between(1, 500)}, options, random.below(2) == 0);
  }
  EXPECT_GE(runs, 60);
}

}  // namespace
}  // namespace espalier::engine::cuda
