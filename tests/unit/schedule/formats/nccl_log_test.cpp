#include "schedule/formats/nccl_log.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

/// The rings of a log, or why there are none.
std::string rings_of(const std::string& text, std::size_t ranks) {
  const auto rings = read_nccl_log_rings(text, "a.log", ranks);
  if (!rings) return rings.error().message;
  std::string all;
  for (const auto& ring : rings->orders) {
    for (const std::int64_t rank : ring) all += (rank == ring.front() ? "" : " ") + std::to_string(rank);
    all += ";";
  }
  return all;
}

/// The ring 0, stride, 2 x stride, ... of so many ranks, and its lines as NCCL writes them.
struct StridedRing {
  int ranks = 0;
  int stride = 1;

  [[nodiscard]] int at(int i) const { return (i % ranks + ranks) % ranks * stride % ranks; }
  [[nodiscard]] std::string order() const {
    std::string text;
    for (int i = 0; i < ranks; ++i) text += (i == 0 ? "" : " ") + std::to_string(at(i));
    return text + ";";
  }
  [[nodiscard]] std::string listed(int channel, int length) const {
    std::string text = "n:1:2 [0] NCCL INFO Channel 0" + std::to_string(channel) + "/02 :";
    for (int i = 0; i < length; ++i) text += "   " + std::to_string(at(i));
    return text + "\n";
  }
  [[nodiscard]] std::string neighbours(int channel, int i, const std::string& end = "") const {
    return "n:1:2 [0] NCCL INFO Ring 0" + std::to_string(channel) + " : " + std::to_string(at(i - 1)) + " -> " +
           std::to_string(at(i)) + " -> " + std::to_string(at(i + 1)) + end + "\n";
  }
};

TEST(NcclLog, RingsThatWereCutArePiecedTogether) {
  // Lines end behind 20 ranks until 2021, behind 28 since; every rank says its neighbours.
  for (const auto& [ranks, cut] : {std::pair{24, 20}, std::pair{32, 28}, std::pair{96, 28}}) {
    const StridedRing one{ranks, 1}, other{ranks, ranks - 1};
    std::string log = one.listed(0, cut) + other.listed(1, cut);
    for (int i = 0; i < ranks; ++i) log += one.neighbours(0, i) + other.neighbours(1, i);
    EXPECT_EQ(rings_of(log, static_cast<std::size_t>(ranks)), one.order() + other.order());
  }
}

TEST(NcclLog, OneMissingNeighbourFollows) {
  const StridedRing ring{32, 3};
  std::string log = ring.listed(0, 28);
  for (int i = 27; i < 30; ++i) log += ring.neighbours(0, i);  // 26 to 30; 30 to 31 to 0 are not there.
  EXPECT_EQ(rings_of(log, 32).substr(0, 47), "a.log: NCCL cut the lines of its rings, and wha");
  EXPECT_EQ(rings_of(log + ring.neighbours(0, 30), 32), ring.order());
}

TEST(NcclLog, ALogThatIsCutIsSaidToBe) {
  const StridedRing ring{32, 1};
  EXPECT_EQ(
      rings_of(ring.listed(0, 20), 32),
      "a.log: NCCL cut the lines of its rings, and what 13 of 32 ranks say of their neighbours (Ring 00 : 31 -> 0 "
      "-> 1) is missing");
  // Of a larger communicator: not ours.
  EXPECT_EQ(rings_of(StridedRing{64, 3}.listed(0, 28), 32),
            "a.log: there is no ring of 32 ranks in it; it has rings of 28");
}

TEST(NcclLog, NeighboursOfOtherCommunicatorsArePassedOver) {
  // RCCL says of which communicator a line is; channels that are in no line of their own are of others.
  const StridedRing ring{32, 5}, small{8, 1};
  std::string log = ring.listed(0, 28);
  for (int i = 0; i < 8; ++i) log += small.neighbours(0, i, " comm 0x5 nRanks 08 busId c1000") + small.neighbours(3, i);
  for (int i = 0; i < 32; ++i) log += ring.neighbours(0, i, " comm 0x6 nRanks 32 busId c1000");
  EXPECT_EQ(rings_of(log, 32), ring.order());
  // Where nothing tells them apart, that is said.
  EXPECT_EQ(rings_of(ring.listed(0, 28) + small.neighbours(0, 1), 32),
            "a.log:2:26: channel 0 has another ring than above: of another communicator");
}

TEST(NcclLog, PiecesOfMoreRanksAreNoRingsOfFewer) {
  // What ranks 0 to 7 of 32 say of their neighbours makes a ring of 8, with one pair missing, that no GPU has.
  const StridedRing ring{32, 1};
  std::string pieces;
  for (int i = 0; i < 32; ++i) pieces += ring.neighbours(0, i);
  EXPECT_EQ(rings_of(ring.listed(0, 28) + pieces, 8),
            "a.log: there is no ring of 8 ranks in it; it has rings of 28; it has ranks up to 31");
  EXPECT_EQ(rings_of(pieces, 8), "a.log: there is no ring of 8 ranks in it; it has ranks up to 31");
  // Rings of 8 that stand in it whole are those of another communicator.
  EXPECT_EQ(rings_of(ring.listed(0, 28) + pieces + StridedRing{8, 3}.listed(0, 8), 8), "0 3 6 1 4 7 2 5;");
}

TEST(NcclLog, SaysHowManyChannelsThereAre) {
  // A line that another process wrote into is none; the numbers say that one is missing.
  const StridedRing ring{8, 3};
  const std::string torn = "n:1:2 [0] NCCL INFO Channel 01/02 :   0   3   6m:3:4 [1] NCCL INFO Connected all rings\n";
  const auto rings = read_nccl_log_rings(ring.listed(0, 8) + torn, "a.log", 8);
  ASSERT_TRUE(rings);
  EXPECT_EQ(rings->orders.size(), 1U);
  EXPECT_EQ(rings->channels, 2U);
  EXPECT_EQ(read_nccl_log_rings("n:1:2 [0] NCCL INFO Channel 00 :   0   1\n", "a.log", 2)->channels, 0U);
}

TEST(NcclLog, ConnectionsCountWhereTheirSenderSaysThem) {
  // The receiver may say that of a tree before the sender says that of the ring.
  std::string log = "h:1:2 [0] NCCL INFO Ring 00 : 0 -> 3 [receive] via NET/Socket/0\n";
  for (const char* pair : {"0 -> 1", "1 -> 2", "2 -> 3", "3 -> 0"}) {
    log += "h:1:2 [0] NCCL INFO Ring 00 : " + std::string(pair) + " [send] via NET/Socket/0\n";
  }
  EXPECT_EQ(rings_of(log, 4), "0 1 2 3;");
}

TEST(NcclLog, FormsOfNccl24) {
  // Rings without a number of channels; connections by the ring's name, those of the ring before those of trees.
  EXPECT_EQ(rings_of("h:1:2 [0] NCCL INFO Channel 00 :    0   2   1   3\n"
                     "h:1:2 [0] NCCL INFO Ring 00 : 0[0] -> 2[2] via P2P/IPC\n",
                     4),
            "0 2 1 3;");
  const StridedRing ring{24, 5};
  std::string log = ring.listed(0, 20);
  for (int i = 0; i < 24; ++i) {
    log += "h:1:2 [0] NCCL INFO Ring 00 : " + std::to_string(ring.at(i)) + "[3] -> " + std::to_string(ring.at(i + 1)) +
           "[4] via P2P/IPC\nh:1:2 [0] NCCL INFO Ring 00 : " + std::to_string(ring.at(i)) + "[3] -> 0[0] via P2P/IPC\n";
  }
  EXPECT_EQ(rings_of(log, 24), ring.order());
}

TEST(NcclLog, SingleEdgesOfNccl24MakeRings) {
  // No line has a ring whole; ranks of four hosts say whom they send to and from whom they receive, trees last.
  const StridedRing ring{8, 3};
  const auto edge = [&](int from, int to, const char* end) {
    return "ip-1:1:2 [0] NCCL INFO Ring 00 : " + std::to_string(from) + " -> " + std::to_string(to) + end + "\n";
  };
  std::string sent, received;
  for (int i = 0; i < 8; ++i) {
    sent += edge(ring.at(i), ring.at(i + 1), " [send] via NET/AWS Libfabric/0");
    received += edge(ring.at(i), ring.at(i + 1), " [receive] via NET/Socket/0");
  }
  EXPECT_EQ(rings_of(sent, 8), ring.order());
  EXPECT_EQ(rings_of(received, 8), ring.order());
  // Half of the ranks' logs: each has its own two neighbours.
  std::string half;
  for (int i = 0; i < 8; i += 2) {
    half += edge(ring.at(i - 1), ring.at(i), " [receive] via NET/IB/0/GDRDMA") +
            edge(ring.at(i), ring.at(i + 1), " [send] via NET/IB/0/GDRDMA") +
            edge(ring.at(i), ring.at(i + 4), " [send] via NET/IB/0/GDRDMA");
  }
  EXPECT_EQ(rings_of(half, 8), ring.order());
  EXPECT_EQ(rings_of(half.substr(half.find('\n', half.size() / 2)), 8).substr(0, 40),
            "a.log: there is no ring of 8 ranks in it");
}

TEST(NcclLog, ConnectionsOfChannelsMakeRings) {
  // What is left of a log where lines with a word of transports were kept: rings are connected before trees, and "/1"
  // are sends and receives.
  for (const std::string channel : {"00", "00/0"}) {
    const StridedRing ring{16, 7};
    std::string log;
    for (int i = 0; i < 16; ++i) {
      const auto edge = [&](const std::string& name, int to) {
        log += "n:1:2 [0] NCCL INFO Channel " + name + " : " + std::to_string(ring.at(i)) + "[4e000] -> " +
               std::to_string(ring.at(to)) + "[57000] via P2P/CUMEM/read\n";
      };
      edge("00/1", i + 5);
      edge(channel, i + 1);
      edge(channel, i + 3);
    }
    EXPECT_EQ(rings_of(log, 16), ring.order());
  }
}

TEST(NcclLog, FormsBeforeNccl24) {
  // Whole rings by the name of rings; until 2.2 without "NCCL"; lines into which another process wrote.
  EXPECT_EQ(rings_of("h:1:2 [0] NCCL INFO Ring 00 :    0   3   1   2\n", 4), "0 3 1 2;");
  const std::string old =
      "h:1:2 [0] INFO Ring 00 :    0   3   1   2\nh:1:2 [3] INFO Ring 00 : 3[3] -> 1[1] via P2P/IPC\n";
  EXPECT_TRUE(is_nccl_log(old));
  EXPECT_EQ(rings_of(old, 4), "0 3 1 2;");
  EXPECT_EQ(rings_of("h:1:2 [0] NCCL INFO Ring 04 : 0[0] -> 2[2] via P2P/IPC\n"
                     "h:1:2 [2] NCCL INFO h:1:3 [1] NCCL INFO Ring 04 : 1[1] -> 0[0] via P2P/IPC\n"
                     "Ring 04 : 2[2] -> 3[3] via P2P/IPC\n",
                     4),
            "0 2 3 1;");
}

}  // namespace
}  // namespace espalier
