#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "engine/communicator/make_transports.h"
#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

/// How much receive work the queue pairs of a device share; 0: each has its own.
std::vector<std::uint32_t> shared_receives_here() {
  return has_verbs() ? std::vector<std::uint32_t>{0, 2, 4096} : std::vector<std::uint32_t>{};
}

class SharedReceives : public ::testing::TestWithParam<std::uint32_t> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedReceives);

/// With two for all, senders find none left again and again.
TEST_P(SharedReceives, AreEnoughForAllQueuePairs) {
  test::PlannedSource source{"flat", Bytes{512}};
  JobOptions options;
  options.transport = TransportChoice::verbs;
  options.timeout = std::chrono::milliseconds(20000);
  options.sockets_per_peer = 2;
  options.verbs.shared_receives = GetParam();
  run_ranks(3, source.source(), std::move(options), [](Communicator& world) {
    for (std::uint64_t round = 0; round < 3; ++round) {
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
        test::run_case(world, {kind, ElementType::int64, ReduceOperation::sum, 3, 0, 3001, round}, test::Memory::plain,
                       false);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, SharedReceives, ::testing::ValuesIn(shared_receives_here()),
                         [](const auto& receives) { return "verbs" + std::to_string(receives.param); });

}  // namespace
}  // namespace espalier::engine
