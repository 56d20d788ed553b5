#include "compare/read/port_counters.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier::compare {
namespace {

std::vector<PortTrouble> troubles_of(std::string_view text) {
  EXPECT_TRUE(has_port_counters(text));
  auto read = read_port_counters(text, "f");
  EXPECT_TRUE(read) << read.error().message;
  return read ? *std::move(read) : std::vector<PortTrouble>();
}

TEST(PortCounters, NvlinkErrorsOfOneLinkStandOut) {
  // As `nvidia-smi nvlink -e` prints it; three replays are what the other links have, too.
  const auto found = troubles_of(R"($ nvidia-smi nvlink -e
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-fde0a018)
	 Link 0: Replay Errors: 3
	 Link 0: Recovery Errors: 0
	 Link 0: CRC Errors: 0

	 Link 1: Replay Errors: 3
	 Link 1: Recovery Errors: 0
	 Link 1: CRC Errors: 0
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-0d1b9302)
	 Link 0: Replay Errors: 3
	 Link 0: Recovery Errors: 2
	 Link 0: CRC Errors: 891
)");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (PortTrouble{1, "", 0, false, "link 0: 891 CRC Errors", 11}));
}

TEST(PortCounters, LinksDownAndBelowTheRateOfOthers) {
  const auto found = troubles_of(R"(GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)
         Link 0: 26.562 GB/s
         Link 1: 26.562 GB/s
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)
         Link 0: 13.281 GB/s
         Link 1: <inactive>
         Link 2: 26.562 GB/s
)");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].says, "link 0: 13.281 GB/s, others 26.562");
  EXPECT_EQ(found[1].says, "link 1: down");
  EXPECT_TRUE(found[0].is_slower && found[1].is_slower);
  EXPECT_EQ(found[0].gpu, 1U);
}

TEST(PortCounters, OfPerfqueryCablesCountAndCongestionDoesNot) {
  constexpr std::string_view text = R"(# Port extended counters: Lid 10 port 1 (CapMask: 0x5300 CapMask2: 0x0000002)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............{}
LinkErrorRecoveryCounter:........0
PortXmitDiscards:................77
PortXmitWait:....................84704351
)";
  std::string bad(text), good(text);
  bad.replace(bad.find("{}"), 2, "41");
  good.replace(good.find("{}"), 2, "0");
  EXPECT_TRUE(troubles_of(good).empty());
  ASSERT_EQ(troubles_of(bad).size(), 1U);
  EXPECT_EQ(troubles_of(bad)[0].says, "port 1: 41 SymbolErrorCounter");
}

TEST(PortCounters, IbqueryerrorsNamesDevices) {
  const auto found = troubles_of(R"(Errors for 0x200002 "leaf-1"
   GUID 0x200002 port ALL: [SymbolErrorCounter == 250] [LinkDownedCounter == 3]
   GUID 0x200002 port 33: [SymbolErrorCounter == 250] [LinkDownedCounter == 3] [PortXmitWait == 4294967295]
   GUID 0x200002 port 34: [PortXmitWait == 4294967295]
Errors for "node7 mlx5_3"
   GUID 0x506b4b0300a1c210 port 1: [PortXmitWait == 12]

## Summary: 16 nodes checked, 1 bad nodes found
)");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (PortTrouble{{}, "leaf-1", 33, false, "port 33: 250 SymbolErrorCounter", 3}));
}

TEST(PortCounters, IbdiagnetNamesPorts) {
  const auto found = troubles_of(R"(Port=1 Lid=0x0009 GUID=0xf4521403002 Device=4123 Port Name=node3/mlx5_2/P1
-----------------------------------------------------------
link_down_counter=0x2
symbol_error_counter=0x1f
port_xmit_wait=0xffff
Port=1 Lid=0x000a GUID=0xf4521403003 Device=4123 Port Name=node4/mlx5_2/P1
link_down_counter=0x0
symbol_error_counter=0x0
Port=1 Lid=0x000b GUID=0xf4521403004 Device=4123 Port Name=node5/mlx5_2/P1
symbol_error_counter=0x0
)");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].device, "node3/mlx5_2");
  EXPECT_EQ(found[0].says, "port 1: 31 symbol_error_counter");
}

TEST(PortCounters, OtherTextsHaveNone) {
  EXPECT_FALSE(has_port_counters("GPU 0: NVIDIA H100 80GB HBM3\n"));
  EXPECT_FALSE(has_port_counters("#  size  count  type\n 1048576 262144 float sum -1 50.1 20.9 39.2 0\n"));
  const auto read = read_port_counters("nothing", "f");
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.starts_with("f:1:"));
}

}  // namespace
}  // namespace espalier::compare
