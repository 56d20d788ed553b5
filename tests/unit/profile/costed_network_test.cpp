#include "profile/costed_network.h"

#include <gtest/gtest.h>

#include "base/parse_units.h"
#include "tests/support/read_good.h"

namespace espalier::profile {
namespace {

/// Two boxes of two GPUs on NVLink, a NIC each on a PCIe switch, one leaf.
constexpr const char* two_boxes = R"(
espalier: 1
name: two-boxes
classes:
  nvlink: {bandwidth: 100 GB/s, latency: 300 ns}
  bus: {bandwidth: 50 GB/s, latency: 200 ns}
  cable: {bandwidth: 25 GB/s, latency: 600 ns}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-1]", kind: gpu}, {id: nvswitch, kind: switch}, {id: root, kind: pcie}, {id: nic, kind: nic}]
    links:
      - {all: ["gpu[0-1]", nvswitch], class: nvlink}
      - {all: ["gpu[0-1]", root], class: bus}
      - {between: [root, nic], class: bus}
      - {between: [nic, leaf], class: cable}
)";

Profile make_profile() {
  Profile profile;
  profile.reached_ppm = {800'000, 900'000, 970'000};
  return profile;
}

ProtocolCosts make_way() {
  ProtocolCosts way;
  way.base = {5'000'000};
  way.hop = {Picoseconds{2'000'000}, Picoseconds{3'000'000}, Picoseconds{10'000'000}};
  way.payload_ppm = 500'000;
  return way;
}

std::int64_t latency(const CostedNetwork& setting, const char* name) {
  const LinkId link = setting.topology.find_link(name);
  EXPECT_FALSE(link.is_none()) << name;
  return setting.topology.link(link).latency.count;
}

std::int64_t overhead(const CostedNetwork& setting, const char* name) {
  return setting.topology.link(setting.topology.find_link(name)).overhead.count;
}

std::int64_t rate(const CostedNetwork& setting, const char* name) {
  return setting.topology.link(setting.topology.find_link(name)).bandwidth().bytes_per_second;
}

TEST(LinkKinds, FollowEndsAndNames) {
  const Topology topology = test::read_good(two_boxes);
  const auto kind = [&](const char* name) { return kind_of(topology, topology.find_link(name)); };
  EXPECT_EQ(kind("box0.gpu0>box0.nvswitch"), LinkKind::fabric);
  EXPECT_EQ(kind("box0.gpu1>box0.root"), LinkKind::pcie);
  EXPECT_EQ(kind("box0.root>box0.nic"), LinkKind::pcie);
  EXPECT_EQ(kind("box0.nic>leaf"), LinkKind::network);
  EXPECT_EQ(kind("leaf>box1.nic"), LinkKind::network);
}

TEST(CostedNetwork, LaysAHopOnEveryWay) {
  const Topology topology = test::read_good(two_boxes);
  const auto setting = make_setting(make_profile(), make_way(), sim::Protocol::ll, {1'000'000}, topology, 2, 1);
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->endpoints.launch.count, 6'000'000);
  EXPECT_EQ(setting->endpoints.payload_ppm, 500'000);
  // Through the NVSwitch: half of the hop on each cable.
  EXPECT_EQ(latency(*setting, "box0.gpu0>box0.nvswitch") + latency(*setting, "box0.nvswitch>box0.gpu1"), 2'000'000);
  // Over PCIe likewise.
  EXPECT_EQ(latency(*setting, "box0.gpu0>box0.root") + latency(*setting, "box0.root>box0.gpu1"), 3'000'000);
  // Between machines: the network's hop, for every chunk, and its cables' own latency; nothing on the NIC's own bus.
  EXPECT_EQ(latency(*setting, "box0.root>box0.nic"), 0);
  EXPECT_EQ(latency(*setting, "box0.nic>leaf") + latency(*setting, "leaf>box1.nic"), 2 * 600'000);
  EXPECT_EQ(overhead(*setting, "box0.nic>leaf") + overhead(*setting, "leaf>box1.nic"), 10'000'000);
  EXPECT_EQ(rate(*setting, "box0.gpu0>box0.nvswitch"), 80'000'000'000);
  EXPECT_EQ(rate(*setting, "box0.gpu0>box0.root"), 45'000'000'000);
  EXPECT_EQ(rate(*setting, "box0.nic>leaf"), 24'250'000'000);
}

TEST(CostedNetwork, SimpleWaitsForTheFlushOfTheNetwork) {
  const Topology topology = test::read_good(two_boxes);
  const auto setting = make_setting(make_profile(), make_way(), sim::Protocol::simple, {}, topology, 2, 1);
  ASSERT_TRUE(setting);
  // The flush keeps the lane busy, too.
  EXPECT_EQ(latency(*setting, "box0.nic>leaf") + latency(*setting, "leaf>box1.nic"), 2 * 600'000);
  EXPECT_EQ(overhead(*setting, "box0.nic>leaf") + overhead(*setting, "leaf>box1.nic"), 10'000'000 + 2 * 600'000);
  EXPECT_EQ(overhead(*setting, "box0.gpu0>box0.nvswitch"), 0);
}

TEST(CostedNetwork, HopsOfTheFabricMayDifferOnSeveralMachines) {
  const Topology topology = test::read_good(two_boxes);
  ProtocolCosts way = make_way();
  way.fabric_between = {1'000'000};
  const auto hop = [&](std::size_t machines) {
    const auto setting = make_setting(make_profile(), way, sim::Protocol::ll, {}, topology, machines, 1);
    return latency(*setting, "box0.gpu0>box0.nvswitch") + latency(*setting, "box0.nvswitch>box0.gpu1");
  };
  EXPECT_EQ(hop(1), 2'000'000);
  EXPECT_EQ(hop(2), 1'000'000);
}

TEST(CostedNetwork, ChunksOfASendAreUnderWayTogether) {
  const Topology topology = test::read_good(two_boxes);
  ProtocolCosts way = make_way();
  way.under_way = 8;
  const auto setting = make_setting(make_profile(), way, sim::Protocol::simple, {}, topology, 2, 1);
  ASSERT_TRUE(setting);
  // One chunk takes as long as with one at a time; of many each waits for an eighth.
  const std::int64_t waited_for = overhead(*setting, "box0.nic>leaf") + overhead(*setting, "leaf>box1.nic");
  EXPECT_EQ(waited_for, (10'000'000 + 2 * 600'000) / 8);
  EXPECT_EQ(latency(*setting, "box0.nic>leaf") + latency(*setting, "leaf>box1.nic") + waited_for,
            10'000'000 + 4 * 600'000);
}

TEST(CostedNetwork, TakesTheSmallerOfTwoPartsOfARate) {
  const auto rate_with = [](const std::string& efficiency) {
    std::string text = two_boxes;
    text.replace(text.find("25 GB/s"), 7, "25 GB/s, efficiency: " + efficiency);
    const Topology topology = test::read_good(text);
    return rate(*make_setting(make_profile(), make_way(), sim::Protocol::ll, {}, topology, 2, 1), "box0.nic>leaf");
  };
  EXPECT_EQ(rate_with("0.8"), 20'000'000'000);
  EXPECT_EQ(rate_with("0.98"), 24'250'000'000);
}

TEST(OnRanks, WhatARankKeepsTakesPartOfItsLinks) {
  ProtocolCosts way;
  way.own_ppm = 500'000;
  way.most = {Bandwidth{300}, Bandwidth{600}, Bandwidth{900}};
  // One transfer and half of one's time: two thirds of the rate are left; of seven transfers 14/15, of twice as many
  // (all_reduce) 28/29.
  const ProtocolCosts two = on_ranks(way, CollectiveKind::all_gather, 2);
  EXPECT_EQ(two.rate_ppm, 666'666);
  EXPECT_EQ(two.most[0].bytes_per_second, 200);
  EXPECT_EQ(on_ranks(way, CollectiveKind::reduce_scatter, 8).rate_ppm, 933'333);
  EXPECT_EQ(on_ranks(way, CollectiveKind::all_reduce, 8).rate_ppm, 965'517);
  EXPECT_EQ(on_ranks(way, CollectiveKind::broadcast, 8).rate_ppm, whole_ppm);
  way.own_ppm = 0;
  EXPECT_EQ(on_ranks(way, CollectiveKind::all_gather, 2).rate_ppm, whole_ppm);
}

TEST(CostedNetwork, DrainsPartOfAChunkOnTheWire) {
  const Topology topology = test::read_good(two_boxes);
  ProtocolCosts way = make_way();
  way.drain_ppm = 500'000;
  const auto setting = make_setting(make_profile(), way, sim::Protocol::simple, {}, topology, 2, 1);
  ASSERT_TRUE(setting);
  // 8 MB of payload are 16 MB on the wire, 200 us on a rank's NVLink at 80 GB/s; half of that.
  EXPECT_EQ((setting->launch_with({8'000'000}) - setting->endpoints.launch).count, 100'000'000);
}

TEST(Launch, HidesWhatGpusDoMeanwhile) {
  const Picoseconds launch{35}, overlap{30};
  EXPECT_EQ(Launch::hide(launch, {10}, overlap).count, 35);
  EXPECT_EQ(Launch::hide(launch, {50}, overlap).count, 55);
  EXPECT_EQ(Launch::hide({5}, {50}, overlap).count, 50);  // never less than GPUs take
}

TEST(Launch, CountsRanksAndSendsOrChannels) {
  const Launch launch{{4'000'000}, {2'000'000}, {500'000}, {100'000}, {}};
  EXPECT_EQ(launch_of(launch, Shape::ring, 8, 1, 24).count, 4'000'000 + 8 * (2'000'000 + 24 * 100'000));
  // Two machines of eight: each rank sends 16 times.
  EXPECT_EQ(launch_of(launch, Shape::p2p, 16, 2, 24).count, 4'000'000 + 8 * (2'000'000 + 16 * 500'000));
  EXPECT_EQ(launch_of({}, Shape::p2p, 16, 2, 24).count, 0);
}

TEST(Launch, TakesNoMoreThanASimulationMay) {
  const Launch hours{max_latency, max_latency, max_latency, max_latency};
  EXPECT_EQ(hours.time(1 << 20, 1 << 20, 1024).count, std::int64_t{1} << 61);
}

TEST(Launch, StartsAsManyChannelsAsHaveSomethingToDo) {
  const auto started = [](Shape shape, sim::Protocol protocol, std::int64_t kib) {
    return channels_started(shape, protocol, 24, {kib << 10}, 8);
  };
  // LL: 4 KiB for each of eight parts of a ring.
  EXPECT_EQ(started(Shape::ring, sim::Protocol::ll, 1), 1U);
  EXPECT_EQ(started(Shape::ring, sim::Protocol::ll, 512), 16U);
  EXPECT_EQ(started(Shape::ring, sim::Protocol::ll, 1024), 24U);
  EXPECT_EQ(started(Shape::tree, sim::Protocol::ll, 64), 16U);
  EXPECT_EQ(started(Shape::ring, sim::Protocol::ll128, 64), 12U);    // 5 KiB each
  EXPECT_EQ(started(Shape::ring, sim::Protocol::simple, 512), 16U);  // 32 KiB each
}

TEST(CostedNetwork, LimitsWhatARankMoves) {
  const Topology topology = test::read_good(two_boxes);
  ProtocolCosts way = make_way();
  way.most = {Bandwidth{30'000'000'000}, Bandwidth{20'000'000'000}, Bandwidth{1'000'000'000}};
  const auto one = make_setting(make_profile(), way, sim::Protocol::ll, {}, topology, 1, 1);
  const auto two = make_setting(make_profile(), way, sim::Protocol::ll, {}, topology, 2, 1);
  const auto many = make_setting(make_profile(), way, sim::Protocol::ll, {}, topology, 9, 1);
  ASSERT_TRUE(one && two && many);
  // Payload is half of what is on the wire.
  EXPECT_EQ(rate(*one, "box0.gpu0>box0.nvswitch"), 60'000'000'000);
  EXPECT_EQ(rate(*two, "box0.gpu0>box0.nvswitch"), 40'000'000'000);
  EXPECT_EQ(rate(*many, "box0.gpu0>box0.nvswitch"), 2'000'000'000);
  EXPECT_EQ(rate(*many, "box0.nic>leaf"), 24'250'000'000);  // no rank's
}

TEST(Chunks, AreHalvedUntilEnoughAreInFlight) {
  ProtocolCosts way;
  way.chunk = {512 << 10};
  way.min_chunk = {32 << 10};
  way.in_flight = {8};
  // A tree (one shard), 16 channels, half of the message in its largest transfer.
  const auto count = [&](std::int64_t size) {
    const Bytes chunk = chunk_of(way, 16, {size}, 1, 0.5);
    return (size / 2 + chunk.count - 1) / chunk.count;
  };
  EXPECT_EQ(count(1 << 10), 1);
  EXPECT_EQ(count(std::int64_t{4} << 20), 8);   // 256 KiB per channel: 8 of 32 KiB
  EXPECT_EQ(count(std::int64_t{64} << 20), 8);  // 4 MiB per channel: 8 of 512 KiB
  EXPECT_EQ(count(std::int64_t{256} << 20), 32);
  way.chunk = {};
  EXPECT_EQ(chunk_of(way, 16, {1 << 20}, 1, 0.5).count, 0);
}

/// NVLS of 16 channels and eight heads: 128 KiB a chunk, 64 from less than 64 of them on, 32 from 8, 16 from 2.
TEST(Chunks, HaveANumberInFlightForEachHalving) {
  ProtocolCosts way;
  way.chunk = {128 << 10};
  way.min_chunk = {16 << 10};
  way.in_flight = {64, 8, 2};
  const auto kibi_of_channel = [&](std::int64_t of_head) {
    const std::int64_t size = of_head * 16 * 8;
    const Bytes chunk = chunk_of(way, 16, {size}, 8, 1);
    return chunk.count * of_head / size >> 10;
  };
  EXPECT_EQ(kibi_of_channel(std::int64_t{64 * 128} << 10), 128);
  EXPECT_EQ(kibi_of_channel(std::int64_t{32 * 128} << 10), 64);
  EXPECT_EQ(kibi_of_channel(std::int64_t{4 * 64} << 10), 32);
  EXPECT_EQ(kibi_of_channel(std::int64_t{32} << 10), 16);
}

TEST(Channels, AreFewerWhereEachWouldCarryTooLittle) {
  ProtocolCosts way;
  EXPECT_EQ(channels_used(way, 24, {1}, 8), 24U);
  way.per_channel = {4096};
  EXPECT_EQ(channels_used(way, 24, {1}, 8), 1U);
  EXPECT_EQ(channels_used(way, 24, {std::int64_t{8} * 4096 * 11}, 8), 8U);  // 11, rounded down to a power of two
  EXPECT_EQ(channels_used(way, 24, {std::int64_t{8} * 4096 * 24}, 8), 24U);
}

TEST(Channels, GoByNicsBetweenMachines) {
  const Topology topology = test::read_good(two_boxes);
  Profile profile;
  profile.channels = 24;
  EXPECT_EQ(channels_of(profile, topology, 1), 24U);
  EXPECT_EQ(channels_of(profile, topology, 2), 2U);  // a NIC of 25 GB/s
  std::string fast = two_boxes;
  fast.replace(fast.find("25 GB/s"), 7, "50 GB/s");
  EXPECT_EQ(channels_of(profile, test::read_good(fast), 2), 4U);
  profile.channels = 3;
  EXPECT_EQ(channels_of(profile, test::read_good(fast), 2), 3U);
}

/// Three slow NICs open six channels, two fast ones eight: the fewest channels count, not the fewest NICs.
TEST(Channels, AreThoseOfTheMachineThatOpensFewest) {
  const Topology topology = test::read_good(R"(
espalier: 1
nodes: [{id: spine, kind: switch}]
groups:
  - {id: slow, host: true,
     nodes: [{id: "gpu[0-3]", kind: gpu}, {id: "nic[0-2]", kind: nic}, {id: nvswitch, kind: switch}],
     links: [{all: ["gpu[0-3]", nvswitch], bandwidth: 300 GB/s}, {zip: ["gpu[0-2]", "nic[0-2]"], bandwidth: 32 GB/s}]}
  - {id: fast, host: true,
     nodes: [{id: "gpu[0-3]", kind: gpu}, {id: "nic[0-1]", kind: nic}, {id: nvswitch, kind: switch}],
     links: [{all: ["gpu[0-3]", nvswitch], bandwidth: 300 GB/s}, {zip: ["gpu[0-1]", "nic[0-1]"], bandwidth: 64 GB/s}]}
links:
  - {all: ["slow.nic[0-2]", spine], bandwidth: 25 GB/s}
  - {all: ["fast.nic[0-1]", spine], bandwidth: 50 GB/s}
)");
  Profile profile;
  profile.channels = 24;
  EXPECT_EQ(channels_of(profile, topology, 2), 6U);
}

/// NCCL's trees with Simple over two machines of eight, 8 channels: eight deep, so 512 KiB from 64 chunks of them on,
/// and 256 KiB from 64 on, 128 KiB from 32 on, 64 KiB from 8 on.
TEST(Chunks, OfTreesGoByDepth) {
  ProtocolCosts way;
  way.chunk = {512 << 10};
  way.min_chunk = {32 << 10};
  way.in_flight = {8, 8, 4, 1};
  const auto kibi = [&](std::int64_t mebi) { return chunk_of(way, 8, {mebi << 20}, 1, 1, 8).count / 8 >> 10; };
  EXPECT_EQ(kibi(256), 512);
  EXPECT_EQ(kibi(128), 256);
  EXPECT_EQ(kibi(64), 128);
  EXPECT_EQ(kibi(32), 128);
  EXPECT_EQ(kibi(16), 64);
  EXPECT_EQ(kibi(4), 64);
  EXPECT_EQ(kibi(2), 32);
}

TEST(CostedNetwork, FewerChannelsMoveLess) {
  const Topology topology = test::read_good(two_boxes);
  Profile profile = make_profile();
  profile.channels = 16;
  ProtocolCosts way = make_way();
  way.most = {Bandwidth{32'000'000'000}, Bandwidth{32'000'000'000}, Bandwidth{32'000'000'000}};
  way.per_channel = {4096};
  const auto quarter = make_setting(profile, way, sim::Protocol::ll, {}, topology, 1, 4);
  ASSERT_TRUE(quarter);
  EXPECT_EQ(rate(*quarter, "box0.gpu0>box0.nvswitch"), 16'000'000'000);  // a quarter of 32, half of it payload
  way.per_channel = {};
  const auto all = make_setting(profile, way, sim::Protocol::ll, {}, topology, 1, 4);
  ASSERT_TRUE(all);
  EXPECT_EQ(rate(*all, "box0.gpu0>box0.nvswitch"), 64'000'000'000);
}

TEST(CostedNetwork, TellsLinksAtASwitchOfTheFabric) {
  const Topology topology = test::read_good(R"(
espalier: 1
name: two-kinds
classes: {nvlink: {bandwidth: 100 GB/s, latency: 300 ns}}
nodes: [{id: "gpu[0-2]", kind: gpu}, {id: nvswitch, kind: switch}]
links: [{all: ["gpu[0-1]", nvswitch], class: nvlink}, {between: [gpu1, gpu2], class: nvlink}]
)");
  Profile profile = make_profile();
  profile.switched_ppm = 700'000;
  const auto setting = make_setting(profile, make_way(), sim::Protocol::ll, {}, topology, 1, 1);
  ASSERT_TRUE(setting);
  EXPECT_EQ(rate(*setting, "gpu0>nvswitch"), 70'000'000'000);
  EXPECT_EQ(rate(*setting, "gpu1>gpu2"), 80'000'000'000);
}

TEST(CountedNetwork, HasTheTunersRatesAlone) {
  const Topology topology = test::read_good(two_boxes);
  TunerModel tuner;
  tuner.counted_ppm = {800'000, 900'000, 960'000};
  const auto counted = counted_network(topology, tuner);
  ASSERT_TRUE(counted);
  const auto rate_of = [&](const char* name) { return counted->link(counted->find_link(name)).bandwidth(); };
  EXPECT_EQ(rate_of("box0.gpu0>box0.nvswitch").bytes_per_second, 80'000'000'000);
  EXPECT_EQ(rate_of("box0.nic>leaf").bytes_per_second, 24'000'000'000);
  EXPECT_EQ(counted->link(counted->find_link("box0.nic>leaf")).latency.count, 600'000);
}

}  // namespace
}  // namespace espalier::profile
