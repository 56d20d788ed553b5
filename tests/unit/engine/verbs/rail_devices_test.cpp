#include "engine/verbs/rail_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RailDevices match(const std::vector<std::string>& nics, const std::vector<VerbsPort>& ports, std::uint8_t port = 0) {
  return match_rails(nics, ports, port);
}

TEST(RailDevices, NicsAreTheDevicesThatTheyAreNamedAfter) {
  const std::vector<VerbsPort> ports = {{"mlx5_1", 1, true}, {"mlx5_0", 1, true}, {"mlx5_10", 1, true}};
  const RailDevices rails = match({"box1.mlx5_0", "box1/mlx5_10", "mlx5_1"}, ports);
  EXPECT_THAT(rails.names, ElementsAre("mlx5_0", "mlx5_10", "mlx5_1"));
  EXPECT_THAT(rails.rail_of_nic, ElementsAre(0, 1, 2));
  EXPECT_EQ(rails.reason, "named as the topology's NICs");
}

TEST(RailDevices, NicsNamePorts) {
  const std::vector<VerbsPort> ports = {{"mlx4_0", 1, true}, {"mlx4_0", 2, true}};
  EXPECT_THAT(match({"a.mlx4_0.p2", "a.mlx4_0.p1"}, ports).names, ElementsAre("mlx4_0:2", "mlx4_0:1"));
  EXPECT_THAT(match({"mlx4_0:1", "mlx4_0:2"}, ports).names, ElementsAre("mlx4_0:1", "mlx4_0:2"));
  // Another port is for devices that are named without one.
  EXPECT_THAT(match({"mlx4_0:1"}, ports, 2).names, ElementsAre("mlx4_0:1"));
  EXPECT_THAT(match({"mlx4_0"}, ports, 2).names, ElementsAre("mlx4_0"));
}

TEST(RailDevices, NicsWithoutAnActivePortShareTheOtherRails) {
  const std::vector<VerbsPort> ports = {
      {"mlx5_0", 1, false}, {"mlx5_1", 1, true}, {"mlx5_2", 1, false}, {"mlx5_2", 2, true}};
  const RailDevices rails = match({"mlx5_0", "mlx5_1", "eth0", "mlx5_2", "mlx5_1"}, ports);
  EXPECT_THAT(rails.names, ElementsAre("mlx5_1", "mlx5_2"));
  EXPECT_THAT(rails.rail_of_nic, ElementsAre(0, 0, 0, 1, 0));
  EXPECT_EQ(rails.reason, "named as the topology's NICs, of which these have no active port here: mlx5_0, eth0");
  EXPECT_THAT(match({"mlx5_1", "mlx5_2"}, ports, 1).names, ElementsAre("mlx5_1")) << "mlx5_2 is up by port 2 alone";
}

TEST(RailDevices, OtherNamesAreTakenInOrderIfThereAreAsMany) {
  const std::vector<VerbsPort> ports = {{"mlx5_0", 1, true}, {"mlx5_1", 1, false}, {"mlx5_2", 1, true}};
  const RailDevices rails = match({"nic0", "nic1"}, ports);
  EXPECT_THAT(rails.names, ElementsAre("mlx5_0:1", "mlx5_2:1"));
  EXPECT_TRUE(rails.rail_of_nic.empty());
  EXPECT_EQ(rails.reason, "in order the topology's NICs nic0, nic1");
  EXPECT_THAT(match({"n"}, {{"mlx4_0", 1, true}, {"mlx4_0", 2, true}}, 2).names, ElementsAre("mlx4_0:2"));
}

TEST(RailDevices, ElseOneDeviceAndTheReason) {
  const std::vector<VerbsPort> ports = {{"rxe0", 1, true}};
  const RailDevices rails = match({"nic0", "nic1", "nic2", "nic3", "nic4", "nic5"}, ports);
  EXPECT_THAT(rails.names, ElementsAre(""));
  EXPECT_EQ(rails.reason,
            "the first that is active, as no device here has the name of a NIC (nic0, nic1, nic2, nic3 and 2 more)");
  // Part of a name is no name.
  EXPECT_THAT(match({"prxe0", "rxe"}, ports).names, ElementsAre(""));
  const RailDevices without_nics = match({}, ports);
  EXPECT_THAT(without_nics.names, ElementsAre(""));
  EXPECT_EQ(without_nics.reason, "");
}

}  // namespace
}  // namespace espalier::engine
