#include "compare/compare_results.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compare/read/read_run.h"

namespace espalier::compare {
namespace {

TEST(ReadResults, TakesWhatSimulateAndRunWrite) {
  const auto runs = read_results(
      R"({"schema": "espalier/results/1", "topology": "box", "collective": "broadcast", "ranks": 4, "root": "g1",
  "results": [{"size": 1024, "count": 256, "type": "float", "algorithm": "auto", "time": 1.5e-05, "algbw": 1.0,
    "planner": "tree", "chunk": 512, "min": 1.4e-05, "p99": 2e-05, "in_place": {"time": 1.6e-05, "algbw": 1},
    "wrong": 0, "plan": "plan.json"}], "winners": []})",
      "run.json");
  ASSERT_TRUE(runs.has_value()) << runs.error().message;
  EXPECT_EQ(runs->topology, "box");
  EXPECT_EQ(runs->origin, "run");
  ASSERT_EQ(runs->rows.size(), 1U);
  const Measurement& row = runs->rows[0];
  EXPECT_EQ(row.collective, "broadcast");
  EXPECT_EQ(row.root, "g1");
  EXPECT_EQ(row.ranks, 4U);
  EXPECT_EQ(row.algorithm, "auto");
  EXPECT_EQ(row.planner, "tree");
  EXPECT_EQ(row.chunk.count, 512);
  EXPECT_DOUBLE_EQ(row.seconds, 1.5e-5);
  EXPECT_DOUBLE_EQ(row.min_seconds.value(), 1.4e-5);
  EXPECT_DOUBLE_EQ(row.p99_seconds.value(), 2e-5);
  EXPECT_DOUBLE_EQ(row.in_place_seconds.value(), 1.6e-5);
  EXPECT_EQ(row.wrong, 0);
  EXPECT_EQ(row.plan, "plan.json");
  EXPECT_EQ(row.line, 2U);
}

TEST(ReadResults, TakesAMatrixRowByRow) {
  const auto runs = read_results(
      R"({"schema": "espalier/results/1", "collective": "all_to_all", "ranks": 2, "matrix": [[1, 2], [0, 5]],
  "results": [{"size": 1024, "algorithm": "lp", "time": 1e-5}]})",
      "run.json");
  ASSERT_TRUE(runs.has_value()) << runs.error().message;
  EXPECT_EQ(runs->shares, (std::vector<std::int64_t>{1, 2, 0, 5}));
}

Measurement make_row(std::int64_t size, std::string algorithm, double seconds) {
  Measurement row;
  row.collective = "all_reduce";
  row.size = {size};
  row.algorithm = std::move(algorithm);
  row.seconds = seconds;
  return row;
}

Measurements make_file(std::string name, std::vector<Measurement> rows) {
  Measurements file;
  file.file = std::move(name);
  file.rows = std::move(rows);
  return file;
}

TEST(CompareResults, UnequalPartsAreNotHeldAgainstOthers) {
  Measurements a = make_file("a", {make_row(8, "ring", 11)}), b = make_file("b", {make_row(8, "ring", 10)});
  a.origin = "simulation";
  b.origin = "run";
  a.shares = b.shares = {3, 1, 1};
  EXPECT_TRUE(compare_results(a, b).has_value());
  b.shares = {1, 3, 1};
  EXPECT_EQ(compare_results(a, b).error().message, "a and b are of other blocks or shards");
  b.shares = {};
  EXPECT_FALSE(compare_results(a, b));
  b.origin = "nccl-tests";  // Whose output does not say it.
  const auto noted = compare_results(a, b);
  ASSERT_TRUE(noted.has_value());
  ASSERT_EQ(noted->notes.size(), 1U);
  EXPECT_EQ(noted->notes[0], "b does not say how unequal its parts were: taken as those of a");
}

TEST(CompareResults, ErrorsAreRelativeToTheSecondFile) {
  const auto result = compare_results(make_file("a", {make_row(8, "ring", 11), make_row(16, "ring", 18)}),
                                      make_file("b", {make_row(8, "ring", 10), make_row(16, "ring", 20)}));
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->sizes.size(), 2U);
  EXPECT_DOUBLE_EQ(result->sizes[0].error, 0.1);
  EXPECT_DOUBLE_EQ(result->sizes[1].error, -0.1);
  EXPECT_DOUBLE_EQ(result->errors.median, 0.1);
  EXPECT_NEAR(result->errors.bias, 0, 1e-15);
}

TEST(CompareResults, RepeatedSizesCountWithTheirMedian) {
  const auto result = compare_results(make_file("a", {make_row(8, "", 10)}),
                                      make_file("b", {make_row(8, "", 9), make_row(8, "", 10), make_row(8, "", 100)}));
  EXPECT_DOUBLE_EQ(result.value().sizes[0].error, 0);
}

TEST(CompareResults, AFileWithoutAlgorithmsPairsWithTheOnlyOne) {
  const auto one = compare_results(make_file("a", {make_row(8, "ring", 10)}), make_file("b", {make_row(8, "", 8)}));
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->sizes[0].algorithm, "ring");
  EXPECT_DOUBLE_EQ(one->sizes[0].error, 0.25);
}

TEST(CompareResults, TheFastestOfSeveralPairsWithAFileWithoutAlgorithms) {
  const Measurements several =
      make_file("a", {make_row(8, "ring", 10), make_row(8, "tree", 9), make_row(9, "ring", 3)});
  const Measurements nameless = make_file("b", {make_row(8, "", 6), make_row(9, "", 6)});
  const auto best = compare_results(several, nameless);
  ASSERT_TRUE(best.has_value());
  ASSERT_EQ(best->sizes.size(), 2U);
  EXPECT_EQ(best->sizes[0].algorithm, "tree");
  EXPECT_DOUBLE_EQ(best->sizes[0].error, 0.5);  // (9 - 6) / 6
  EXPECT_EQ(best->sizes[1].algorithm, "ring");
  const auto chosen = compare_results(several, nameless, "ring");
  EXPECT_DOUBLE_EQ(chosen.value().sizes[0].a, 10);
  EXPECT_FALSE(compare_results(several, nameless, "packing"));
  const auto fastest = compare_results(several, make_file("b", {make_row(8, "flat", 6)}), "best");
  EXPECT_EQ(fastest.value().sizes[0].algorithm, "tree vs flat");
}

TEST(CompareResults, AutoPairsWithWhatItChose) {
  Measurement chosen = make_row(8, "auto", 10);
  chosen.planner = "tree";
  const auto result = compare_results(make_file("a", {chosen}), make_file("b", {make_row(8, "tree", 10)}));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->sizes[0].algorithm, "tree");
}

/// At 8 a takes ring (1 < 2) and b tree (3 < 4): choosing ring costs 4/3 - 1. At 16 both take tree.
TEST(CompareResults, FindsWhereTheWinnersDiffer) {
  const auto result =
      compare_results(make_file("a", {make_row(8, "ring", 1), make_row(8, "tree", 2), make_row(16, "ring", 3),
                                      make_row(16, "tree", 2), make_row(16, "auto", 1)}),
                      make_file("b", {make_row(8, "ring", 4), make_row(8, "tree", 3), make_row(16, "ring", 5),
                                      make_row(16, "tree", 4), make_row(16, "auto", 1)}));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->compared_winners, 2U);
  ASSERT_EQ(result->different.size(), 1U);
  EXPECT_EQ(result->different[0].a, "ring");
  EXPECT_EQ(result->different[0].b, "tree");
  EXPECT_NEAR(result->different[0].cost, 1.0 / 3, 1e-12);
}

TEST(CompareResults, SaysWhatHasNoCounterpartAndWhatWasWrong) {
  Measurement wrong = make_row(8, "ring", 1);
  wrong.wrong = 3;
  wrong.ranks = 4;
  Measurement other = make_row(8, "ring", 1);
  other.ranks = 8;
  const auto result = compare_results(make_file("a", {wrong, make_row(32, "ring", 1)}), make_file("b", {other}));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->only_in_a, 1U);
  EXPECT_EQ(result->only_in_b, 0U);
  EXPECT_EQ(result->notes, (std::vector<std::string>{"a: 1 row has wrong data", "a has 4 ranks, b has 8"}));
}

TEST(CompareResults, APredictionForAnotherNumberOfRanksIsRefused) {
  Measurement predicted = make_row(8, "ring", 1);
  predicted.ranks = 16;
  Measurement measured = make_row(8, "ring", 1);
  Measurements a = make_file("a", {predicted}), b = make_file("b", {measured});
  a.origin = "simulation";
  b.origin = "nccl-tests";
  EXPECT_TRUE(compare_results(a, b).has_value());  // It does not say.
  b.rows[0].implied_ranks = {15, 17};
  EXPECT_TRUE(compare_results(a, b).has_value());
  b.rows[0].implied_ranks = {23, 25};
  const auto implied = compare_results(a, b);
  ASSERT_FALSE(implied.has_value());
  EXPECT_EQ(implied.error().message, "a has 16 ranks, b has 23 to 25");
  b.rows[0].ranks = 24;
  const auto said = compare_results(b, a);
  ASSERT_FALSE(said.has_value());
  EXPECT_EQ(said.error().message, "b has 24 ranks, a has 16");
}

TEST(CompareResults, RowsOnSeveralNumbersOfRanksArePairedByThem) {
  // IMB measures on 2, 4, 8 ranks in one go.
  const auto on = [](std::uint32_t ranks, double seconds) {
    Measurement row = make_row(8, "", seconds);
    row.ranks = ranks;
    return row;
  };
  Measurement pair = on(2, 7);
  pair.collective = "broadcast";
  Measurements imb = make_file("imb", {pair, on(2, 1), on(4, 2), on(8, 4)});
  imb.origin = "imb";
  Measurements simulated = make_file("sim", {on(8, 5)});
  simulated.origin = "simulation";
  const auto result = compare_results(simulated, imb);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  ASSERT_EQ(result->sizes.size(), 1U);
  EXPECT_DOUBLE_EQ(result->sizes[0].b, 4);
  EXPECT_EQ(result->notes, (std::vector<std::string>{"imb has " + on(8, 1).collective +
                                                     " on 2, 4, 8 ranks: its rows on 8 are compared"}));
  simulated.rows[0].ranks = 16;
  EXPECT_FALSE(compare_results(simulated, imb).has_value());
  // Both have several.
  const auto both = compare_results(imb, imb);
  ASSERT_TRUE(both.has_value());
  ASSERT_EQ(both->sizes.size(), 4U);
  EXPECT_EQ(both->sizes[0].collective, on(8, 1).collective + " on 2 ranks");
  EXPECT_DOUBLE_EQ(both->sizes[2].a, 4);
}

TEST(CompareResults, NothingInCommonIsAnError) {
  const auto result =
      compare_results(make_file("a", {make_row(8, "ring", 1)}), make_file("b", {make_row(9, "ring", 1)}));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().help, "a has all_reduce by ring of 8 B; b has all_reduce by ring of 9 B");
}

TEST(CompareResults, ATimelineIsARow) {
  Timeline timeline;
  timeline.title = "all_gather, ring, 64 KiB on box";
  timeline.rank_names = {"g0", "g1"};
  timeline.spans = {{0, TransferId(0), 0, Phase::send, {100}, {600}},
                    {1, TransferId(0), 0, Phase::recv, {200}, {1100}}};
  const auto rows = measurements_of(timeline, "t.json");
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->rows[0].collective, "all_gather");
  EXPECT_EQ(rows->rows[0].algorithm, "ring");
  EXPECT_EQ(rows->rows[0].size.count, 65536);
  EXPECT_DOUBLE_EQ(rows->rows[0].seconds, 1e-9);
  timeline.title = "something else";
  EXPECT_FALSE(measurements_of(timeline, "t.json").has_value());
}

TEST(Statistics, MediansAndQuantiles) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(median({}), 0);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9);
  EXPECT_DOUBLE_EQ(quantile({5}, 1), 5);
  EXPECT_DOUBLE_EQ(relative_error(0, 0), 0);
  EXPECT_TRUE(std::isinf(relative_error(1, 0)));
  EXPECT_DOUBLE_EQ(relative_error(3, 2), 0.5);
}

TEST(CompareResults, PairsOfRanksPairByTheirMembers) {
  const auto of_pairs = [](double there, double back) {
    Measurement first = make_row(1024, "", there), second = make_row(1024, "", back);
    first.members = {0, 1};
    second.members = {1, 0};
    return make_file("pairs", {first, second});
  };
  const auto result = compare_results(of_pairs(1e-3, 2e-3), of_pairs(2e-3, 1e-3));
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->sizes.size(), 2U);
  EXPECT_EQ(result->sizes[0].collective, "all_reduce 0>1");
  EXPECT_DOUBLE_EQ(result->sizes[0].error, -0.5);
  EXPECT_EQ(result->sizes[1].collective, "all_reduce 1>0");
  EXPECT_DOUBLE_EQ(result->sizes[1].error, 1);
  // A file of one pair that does not say which is held against the median of all.
  const auto one = compare_results(of_pairs(1e-3, 3e-3), make_file("one", {make_row(1024, "", 2e-3)}));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_DOUBLE_EQ(one->sizes.at(0).error, 0);
}

}  // namespace
}  // namespace espalier::compare
