#include <gtest/gtest.h>

#include "schedule/json/schedule_json.h"
#include "schedule/layout.h"
#include "schedule/loads.h"
#include "schedule/parts.h"
#include "schedule/verify/verify.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

using Numbers = std::vector<std::int64_t>;

Collective all_to_all(Numbers blocks, std::size_t ranks) {
  return *make_collective(CollectiveKind::all_to_all, ranks, std::nullopt, std::move(blocks));
}

/// Rank 0 sends 4 to rank 1, rank 1 keeps 2 and sends 1 to rank 2, rank 2 sends 3 to rank 0.
Collective of_three() { return all_to_all({0, 4, 0, 0, 2, 1, 3, 0, 0}, 3); }

TEST(Matrix, IsKeptInLowestTermsAndEqualBlocksAreNone) {
  EXPECT_EQ(all_to_all({0, 8, 0, 0, 4, 2, 6, 0, 0}, 3), of_three());
  EXPECT_TRUE(all_to_all({5, 5, 5, 5}, 2).shares.empty());
  EXPECT_FALSE(all_to_all({5, 5, 5, 5}, 2).has_matrix());
}

/// Rank 1 receives 4 + 2 = 6, the most of any rank: that is S, and all blocks are 10 of it. It receives 4 from others.
TEST(Matrix, SIsTheMostThatARankSendsOrReceives) {
  EXPECT_EQ(of_three().largest_line(), 6);
  EXPECT_EQ(of_three().extent(), make_rational(10, 6));
  EXPECT_EQ(of_three().busbw_factor(), make_rational(4, 6));
  EXPECT_EQ(all_to_all({1, 1, 1, 1}, 2).extent(), make_rational(2));
  EXPECT_EQ(all_to_all({1, 1, 1, 1}, 2).busbw_factor(), make_rational(1, 2));
}

TEST(Matrix, WrongOnesAreRefused) {
  const auto message = [](Numbers blocks) {
    const auto made = make_collective(CollectiveKind::all_to_all, 2, std::nullopt, std::move(blocks));
    return made ? std::string("none") : made.error().message;
  };
  EXPECT_EQ(message({1, 2, 3}), "the traffic matrix has 3 blocks, and 2 ranks have 4");
  EXPECT_EQ(message({1, 2, -3, 4}), "the block from rank 1 to rank 0 is -3, below zero");
  EXPECT_EQ(message({0, 0, 0, 0}), "all blocks are zero");
  EXPECT_EQ(message({max_matrix_sum, 1, 0, 0}), "the blocks sum to more than 2^52");
  EXPECT_EQ(message({INT64_MAX, INT64_MAX, 0, 0}), "the blocks sum to more than 2^52");
}

/// A schedule of slices alone: one for every block that is not zero.
Schedule sliced(const Collective& collective) {
  Schedule schedule(collective, "", "");
  for (std::int64_t part = 0; part < collective.part_count(); ++part) {
    const std::int64_t share = collective.share_of_part(part);
    if (share == 0) continue;
    const PartRanks ranks = ranks_of_part(collective, part);
    schedule.slices.push_back({schedule.units, share, ranks.rank, ranks.to});
    schedule.units += share;
  }
  return schedule;
}

/// Of 6 elements every block has its share exactly; of 7, rounded up: 4 * 7/6 = 4.67, 2.33, 1.17 and 3.5.
TEST(Matrix, ElementsAreDealtByIt) {
  EXPECT_EQ(block_elements(of_three(), 6), (Numbers{0, 4, 0, 0, 2, 1, 3, 0, 0}));
  EXPECT_EQ(block_elements(of_three(), 7), (Numbers{0, 5, 0, 0, 3, 2, 4, 0, 0}));
  const Schedule schedule = sliced(of_three());
  const auto layout = Layout::make(schedule, Bytes{28}, 4);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->range(SliceId(0), 1), (ByteRange{0, 20}));
  EXPECT_EQ(layout->range(SliceId(1), 2), (ByteRange{20, 40}));
  EXPECT_EQ(layout->range(SliceId(3), 1), (ByteRange{40, 56}));
  EXPECT_EQ(evenly_dealt(of_three(), Bytes{28}, 4), Bytes{28});
}

Topology ring() { return *generate_ring({.ranks = 3}); }

/// Every block straight to its rank.
Schedule direct(const Topology& topology) {
  Schedule schedule = sliced(of_three());
  schedule.topology = topology.name();
  for (std::size_t i = 0; i < schedule.slices.size(); ++i) {
    const Slice& slice = schedule.slices[i];
    if (slice.rank == slice.to) continue;
    const std::array links{topology.links_between(topology.node_of(slice.rank), topology.node_of(slice.to)).front()};
    schedule.add_transfer(schedule.add_route(slice.rank, slice.to, links), SliceId(i), 1, Action::copy, ChannelId(0));
  }
  return schedule;
}

Rule first_rule(const Schedule& schedule, const Topology& topology) {
  const VerifyReport report = verify(schedule, topology);
  EXPECT_FALSE(report.ok());
  return report.ok() ? Rule::S9 : report.breaches.front().rule;
}

TEST(Matrix, ADirectScheduleIsRight) {
  const Topology topology = ring();
  const Schedule schedule = direct(topology);
  EXPECT_TRUE(verify(schedule, topology).ok());
  // The link from rank 0 to rank 1 carries 4 of S = 6.
  const auto rate = topology.link(topology.links_between(topology.node_of(Rank(0)), topology.node_of(Rank(1))).front())
                        .bandwidth()
                        .bytes_per_second;
  EXPECT_EQ(compute_loads(schedule, topology).time_per_byte, make_rational(4) / make_rational(6) / make_rational(rate));
}

TEST(Matrix, S1RefusesAMatrixOfOtherRanks) {
  const Topology topology = ring();
  Schedule schedule = direct(topology);
  schedule.collective.shares.pop_back();
  EXPECT_EQ(first_rule(schedule, topology), Rule::S1);
  schedule = direct(topology);
  schedule.collective.shares[0] = -1;
  EXPECT_EQ(first_rule(schedule, topology), Rule::S1);
}

TEST(Matrix, S2RefusesSlicesOfOtherBlocks) {
  const Topology topology = ring();
  Schedule schedule = direct(topology);
  std::swap(schedule.collective.shares[1], schedule.collective.shares[2]);  // What rank 0 sends, to rank 2 instead.
  EXPECT_EQ(first_rule(schedule, topology), Rule::S2);
  schedule = direct(topology);
  schedule.units += 1;
  EXPECT_EQ(first_rule(schedule, topology), Rule::S2);
  schedule = direct(topology);
  schedule.slices[0].length -= 1;
  schedule.slices[1].offset -= 1;
  schedule.slices[1].length += 1;
  EXPECT_EQ(first_rule(schedule, topology), Rule::S2);
}

TEST(Matrix, S5RefusesABlockThatIsNotThereYet) {
  const Topology topology = ring();
  Schedule schedule = direct(topology);
  const std::array links{topology.links_between(topology.node_of(Rank(2)), topology.node_of(Rank(1))).front()};
  schedule.add_transfer(schedule.add_route(Rank(2), Rank(1), links), SliceId(0), 1, Action::copy, ChannelId(1));
  EXPECT_EQ(first_rule(schedule, topology), Rule::S5);
}

TEST(Matrix, S7RefusesABlockThatDoesNotArrive) {
  const Topology topology = ring();
  Schedule schedule = direct(topology);
  schedule.transfers.pop_back();
  EXPECT_EQ(first_rule(schedule, topology), Rule::S7);
}

TEST(Matrix, JsonRefusesWrongOnes) {
  const auto message = [](const std::string& matrix, const char* collective = "all_to_all") {
    const std::string text = std::string("{\"espalier_schedule\": 1, \"collective\": \"") + collective +
                             "\", \"topology\": \"t\", \"ranks\": [\"a\", \"b\"],\n" + matrix +
                             ",\n\"algorithm\": \"x\", \"units\": 1, \"slices\": [], \"transfers\": []}";
    const auto read = read_plan(text, "p", nullptr);
    return read ? std::string("none") : read.error().message;
  };
  EXPECT_NE(message("\"matrix\": [[1, 2], [3]]").find("row 1 of the matrix has 1 blocks, and there are 2 ranks"),
            std::string::npos);
  EXPECT_NE(message("\"matrix\": [[1, 2]]").find("the matrix has 1 rows, and there are 2 ranks"), std::string::npos);
  EXPECT_NE(message("\"matrix\": [[1, 2], [3, -4]]").find("a block"), std::string::npos);
  EXPECT_NE(message("\"matrix\": [[1, 2], [3, 4]]", "all_gather").find("all_gather has no matrix"), std::string::npos);
  EXPECT_NE(message("\"shares\": [1, 2]").find("all_to_all has no shards that could be unequal"), std::string::npos);
}

}  // namespace
}  // namespace espalier
