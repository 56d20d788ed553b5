#include "profile/nccl_tuner.h"

#include <gtest/gtest.h>

#include <cmath>

namespace espalier::profile {
namespace {

constexpr double kibi = 1024, gibi = kibi * kibi * kibi;

/// Eight H100 on NVSwitch as the tuner counts them: 18 links of 20.6 GB/s.
TunerView eight_h100() {
  TunerView view;
  view.generation = Generation::hopper;
  view.ranks = 8;
  view.channels = 24;
  view.fabric = 370.8e9;
  return view;
}

constexpr double load = 14.0 / 8 / 370.8e9;  // of rings: 2 (N-1)/N of S on every link

TEST(NcclTuner, RingsOnOneMachine) {
  const TunerView view = eight_h100();
  // Base 6.6 us, 14 hops of 0.6; LL carries at most 141 GB/s there, 8/14 of it of S.
  const Bytes size{1 << 18};
  EXPECT_NEAR(tuner_seconds(view, Shape::ring, sim::Protocol::ll, load, size), 15e-6 + 256 * kibi / (141e9 * 8 / 14),
              1e-9);
  // Base 8.4 us, 14 hops of 3.4, the whole rate.
  EXPECT_NEAR(tuner_seconds(view, Shape::ring, sim::Protocol::simple, load, {std::int64_t{1} << 30}),
              56e-6 + gibi * load, 1e-8);
}

TEST(NcclTuner, SendsInsideAMachineGoByLlUpTo16KiB) {
  TunerView view = eight_h100();
  view.collective = CollectiveKind::all_to_all;
  const auto seconds = [&](sim::Protocol protocol, Bytes size) {
    return tuner_seconds(view, Shape::p2p, protocol, 7.0 / 8 / 370.8e9, size);
  };
  const Bytes most{8 * 16384}, more{8 * 16384 + 8};
  EXPECT_LT(seconds(sim::Protocol::ll, most), seconds(sim::Protocol::simple, most));
  EXPECT_TRUE(std::isinf(seconds(sim::Protocol::ll, more)));
  view.machines = 2;
  EXPECT_TRUE(std::isinf(seconds(sim::Protocol::ll, most)));
}

TEST(NcclTuner, NvlsBeatsRingsWhereThereIsMuchToCarry) {
  const TunerView view = eight_h100();
  // A channel of each of eight heads at 40 GB/s, 0.85 of it, 7/8 of the channels, twice for all_reduce; 8/14 of it of
  // S.
  const double rate = 2 * 8 * 40e9 * 0.85 * 7 / 8 * 8 / 14;
  const Bytes large{std::int64_t{1} << 30};
  EXPECT_NEAR(tuner_seconds(view, Shape::nvls, sim::Protocol::simple, load, large), 25e-6 + gibi / rate, 1e-8);
  EXPECT_LT(tuner_seconds(view, Shape::nvls, sim::Protocol::simple, load, large),
            tuner_seconds(view, Shape::ring, sim::Protocol::simple, load, large));
  const Bytes small{1 << 10};
  EXPECT_GT(tuner_seconds(view, Shape::nvls, sim::Protocol::simple, load, small),
            tuner_seconds(view, Shape::ring, sim::Protocol::ll, load, small));
}

/// Bytes of S a second that NVLS all_reduce is counted at.
double nvls_rate(const TunerView& view) {
  const Bytes one{std::int64_t{1} << 30}, two{std::int64_t{1} << 31};
  const auto seconds = [&](Bytes size) { return tuner_seconds(view, Shape::nvls, sim::Protocol::simple, load, size); };
  return gibi / (seconds(two) - seconds(one));
}

TEST(NcclTuner, NvlsLeavesRoomForARanksOwnPart) {
  // What NCCL itself counts. 17 of 18 links carry 350.2 GB/s, a ninth of it 38.9: a channel runs at 30.
  TunerView view = eight_h100();
  view.fabric = 17 * 20.6e9;
  EXPECT_NEAR(nvls_rate(view), 204e9, 1e7);
  // Six ranks: a seventh of 370.8 is 53, so 50; both directions of a channel carry 60 at most: 6 x 60 x 6 / 10.
  view = eight_h100();
  view.ranks = 6;
  EXPECT_NEAR(nvls_rate(view), 216e9, 1e7);
  // Eight B200: 80 of 80.2, and 90 at most: 8 x 90 x 8 / 14.
  view = eight_h100();
  view.generation = Generation::blackwell;
  view.fabric = 18 * 40.1e9;
  EXPECT_NEAR(nvls_rate(view), 411.4e9, 1e8);
  // Three links of 40.1 GB/s: a ninth is 13.4, and no channel of a B200 is as slow: there is no NVLS.
  view.fabric = 3 * 40.1e9;
  EXPECT_TRUE(std::isinf(tuner_seconds(view, Shape::nvls, sim::Protocol::simple, load, {1 << 20})));
}

TEST(NcclTuner, CollnetCrossesTheNetworkOnce) {
  TunerView view = eight_h100();
  view.ranks = 16;
  view.machines = 2;
  view.network = 360e9;
  const double of_heads = 1 / 360e9;  // every NIC carries its part of S once each way
  const Bytes tiny{8}, large{std::int64_t{1} << 30};
  // Straight to the heads: up and down a hop of 3.7 us and 0.4 for each of seven others; chains: seven hops of 2.8
  // each.
  EXPECT_NEAR(tuner_seconds(view, Shape::collnet_direct, sim::Protocol::simple, of_heads, tiny), 44e-6, 1e-8);
  EXPECT_NEAR(tuner_seconds(view, Shape::collnet_chain, sim::Protocol::simple, of_heads, tiny), 69.2e-6, 1e-8);
  EXPECT_NEAR(tuner_seconds(view, Shape::collnet_direct, sim::Protocol::simple, of_heads, large), 44e-6 + gibi / 360e9,
              1e-8);
  // Simple alone.
  EXPECT_TRUE(std::isinf(tuner_seconds(view, Shape::collnet_chain, sim::Protocol::ll, of_heads, large)));
}

TEST(NcclTuner, TreesOverTwoMachinesCrossTheNetworkOnceEachWay) {
  TunerView view = eight_h100();
  view.ranks = 16;
  view.machines = 2;
  view.network = 360e9;
  const Bytes tiny{8};
  // Base 6.8 us; up and down seven hops of 0.6 and one of 5 over the network.
  EXPECT_NEAR(tuner_seconds(view, Shape::tree, sim::Protocol::ll, load, tiny), 6.8e-6 + 2 * (7 * 0.6e-6 + 5e-6), 1e-9);
  // A fabric's own latency counts on top, twice with Simple.
  view.network_latency = 20e-6;
  EXPECT_NEAR(tuner_seconds(view, Shape::tree, sim::Protocol::simple, load, tiny),
              8.4e-6 + 2 * (7 * 4e-6 + 14e-6 + 40e-6), 1e-9);
}

TEST(NcclTuner, KnowsWhatThereIs) {
  TunerView view = eight_h100();
  EXPECT_TRUE(std::isinf(tuner_seconds(view, Shape::nvls, sim::Protocol::ll, load, {8})));
  view.inside = LinkKind::pcie;
  EXPECT_TRUE(std::isinf(tuner_seconds(view, Shape::ring, sim::Protocol::ll128, load, {8})));
  view.generation = Generation::ampere;
  EXPECT_TRUE(std::isinf(tuner_seconds(view, Shape::nvls, sim::Protocol::simple, load, {8})));
}

}  // namespace
}  // namespace espalier::profile
