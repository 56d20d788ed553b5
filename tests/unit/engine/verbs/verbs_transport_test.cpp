#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"
#include "tests/support/rdma_devices.h"

namespace espalier::engine {
namespace {

/// Which rails the routes name; nothing: they do not say.
struct VerbsCase {
  const char* name;
  std::optional<RailPair> named;
  std::vector<bool> sends;  ///< By rail.
};

/// Only where there are two devices: scripts/verbs-vm boots a machine that has them. A packet from one to the other
/// would not leave such a machine, so that routes stay on one.
std::vector<VerbsCase> cases_here() {
  if (test::rdma_devices().size() < 2) return {};
  return {{"verbsByRoutes", RailPair{1, 1}, {false, true}},
          {"verbsModulo", RailPair{2, 4}, {true, false}},
          {"verbsDealt", std::nullopt, {true, true}}};
}

class VerbsRails : public ::testing::TestWithParam<VerbsCase> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VerbsRails);

TEST_P(VerbsRails, CarryWhatTheirRoutesSay) {
  const std::vector<std::string> devices = {test::rdma_devices()[0], test::rdma_devices()[1]};
  test::PlannedSource source{"ring", Bytes{std::int64_t{16} << 10U}};
  JobOptions options;
  options.transport = TransportChoice::verbs;
  options.timeout = std::chrono::milliseconds(20000);
  options.verbs.devices = {devices};
  options.verbs.choose_rails = [named = GetParam().named](const Schedule&, RouteId) { return named; };
  std::vector<std::uint64_t> before;
  for (const std::string& device : devices) before.push_back(test::sent_packets(device));
  run_ranks(2, source.source(), std::move(options), [](Communicator& world) {
    for (const test::Memory memory : {test::Memory::plain, test::Memory::adopted}) {
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
        test::run_case(world, {kind, ElementType::float32, ReduceOperation::sum, 2, 0, 60001, 1}, memory, false);
      }
    }
  });
  // Most of 60001 numbers of 4 bytes, in packets of 4 KiB at most: more than 20.
  for (std::size_t rail = 0; rail < devices.size(); ++rail) {
    const std::uint64_t sent = test::sent_packets(devices[rail]) - before[rail];
    EXPECT_EQ(sent > 20, GetParam().sends[rail]) << devices[rail] << " sent " << sent << " packets";
  }
}

INSTANTIATE_TEST_SUITE_P(All, VerbsRails, ::testing::ValuesIn(cases_here()),
                         [](const auto& rails) { return std::string(rails.param.name); });

}  // namespace
}  // namespace espalier::engine
