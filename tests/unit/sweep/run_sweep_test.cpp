#include "sweep/run_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "planners/chooser.h"
#include "planners/planner.h"
#include "sim/simulate.h"
#include "sweep/merge.h"
#include "sweep/row_text.h"
#include "sweep/shard.h"
#include "topology/generate/generate.h"

namespace espalier::sweep {
namespace {

constexpr RowStyle plain_csv{RowFormat::csv, false};

/// Two machines, failures of one of them that cut ranks off, an algorithm that refuses, and jitter.
Spec small_spec() {
  Spec spec;
  spec.machines.push_back({*generate_torus({{3, 3}, {}}), "", "", nullptr, {}});
  spec.machines.push_back({*generate_torus({{4}, {}}), "n=4", "", nullptr, {}});
  spec.collectives = {CollectiveKind::all_gather, CollectiveKind::broadcast, CollectiveKind::all_to_all};
  spec.algorithms = {"ring", "tree", "auto"};
  spec.sizes = {Bytes{1 << 20}, Bytes{4096}};
  spec.chunks = {std::nullopt, Bytes{65536}};
  spec.failures.links = true;
  spec.failures.ranks = true;
  spec.jitters_ppm = {20'000, 0};
  spec.seeds = {2, 1};
  return spec;
}

std::vector<Row> run_all(const Spec& spec, const std::vector<Unit>& units, unsigned threads) {
  std::vector<Row> rows;
  const auto done = run_sweep(spec, units, threads, [&](Row row) -> Result<void> {
    row.timing.reset();
    rows.push_back(std::move(row));
    return {};
  });
  EXPECT_TRUE(done);
  std::ranges::sort(rows, {}, &Row::key);
  return rows;
}

std::string text_of(const std::vector<Row>& rows) {
  std::ostringstream out;
  EXPECT_TRUE(write_rows(out, rows, plain_csv));
  return out.str();
}

std::vector<Key> keys_of(const std::vector<Unit>& units) {
  std::vector<Key> keys;
  for (const Unit& unit : units) keys.insert(keys.end(), unit.keys.begin(), unit.keys.end());
  return keys;
}

TEST(ListUnits, KeysAreSortedWhateverTheOrderOfTheSpec) {
  Spec spec = small_spec();
  const std::vector<Key> keys = keys_of(*list_units(spec));
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
  std::ranges::reverse(spec.machines);
  std::ranges::reverse(spec.algorithms);
  spec.machines.push_back(spec.machines.front());
  spec.sizes.push_back(spec.sizes.front());
  EXPECT_EQ(keys_of(*list_units(spec)), keys);
}

TEST(ListUnits, CountsWhatASymmetryMakesTheSame) {
  // A ring of four: all four cables are alike, and without a root all four ranks.
  Spec spec = small_spec();
  spec.machines.erase(spec.machines.begin());
  spec.collectives = {CollectiveKind::all_gather};
  const auto units = *list_units(spec);
  ASSERT_EQ(units.size(), 3U);
  EXPECT_EQ(units[0].alike, 1U);
  EXPECT_EQ(units[1].alike, 4U);
  EXPECT_EQ(units[2].alike, 4U);
  // 3 algorithms, 2 sizes, 2 chunks, no jitter and jitter of 2 seeds.
  EXPECT_EQ(units[0].keys.size(), 36U);
}

TEST(ListUnits, RefusesFailuresAndRootsThatAreNowhere) {
  Spec spec = small_spec();
  spec.without = {"wibble"};
  const auto failed = list_units(spec);
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().message.starts_with("--without: ")) << failed.error().message;
  spec.without.clear();
  spec.root = "99";
  EXPECT_TRUE(list_units(spec).error().message.starts_with("-r: '99' is not a rank of "));
}

TEST(RunSweep, GivesTheSameBytesOnAnyNumberOfThreads) {
  const Spec spec = small_spec();
  const auto units = *list_units(spec);
  const std::vector<Row> rows = run_all(spec, units, 1);
  ASSERT_EQ(rows.size(), count_rows(units));
  const std::string text = text_of(rows);
  for (const unsigned threads : {2U, 3U, 8U}) EXPECT_EQ(text_of(run_all(spec, units, threads)), text) << threads;
}

TEST(RunSweep, ProfilesCountTheirCosts) {
  Spec spec;
  auto costs = std::make_shared<profile::Profile>();
  profile::ProtocolCosts& way = costs->ways[{profile::Shape::ring, sim::Protocol::ll}];
  way.base = {7'000'000};
  way.payload_ppm = 500'000;
  const Topology topology = *generate_torus({{4}, {}});
  spec.machines.push_back({topology, "", "", nullptr, {}});
  spec.machines.push_back({topology, "", "mine:slow", costs, {{3'000'000}}});
  spec.collectives = {CollectiveKind::all_gather};
  spec.algorithms = {"ring", "nccl"};
  spec.sizes = {Bytes{1 << 20}};
  const auto units = *list_units(spec);
  const std::vector<Row> rows = run_all(spec, units, 2);
  ASSERT_EQ(rows.size(), 4U);
  // Sorted by profile, then by algorithm: links alone have no NCCL.
  EXPECT_TRUE(rows[0].is_unplanned()) << rows[0].reason;
  ASSERT_TRUE(rows[1].figures && rows[2].figures && rows[3].figures) << rows[2].reason << rows[3].reason;
  EXPECT_EQ(rows[1].key.profile, "");
  EXPECT_EQ(rows[3].key.profile, "mine:slow");
  EXPECT_EQ(rows[2].figures->planner, "nccl/ring/ll");
  EXPECT_EQ(rows[3].figures->planner, "ring/ll");
  // Launch and base, and the links carry twice as much; their latencies are the profile's, which has none.
  const auto launched = rows[3].figures->elapsed.seconds() - 10e-6;
  EXPECT_GT(launched, 1.5 * rows[1].figures->elapsed.seconds());
  EXPECT_EQ(rows[3].figures->busbw, rows[3].figures->algbw * 3 / 4);
}

TEST(RunSweep, RowsSayWhereMeasurementsLie) {
  Spec spec;
  auto costs = std::make_shared<profile::Profile>();
  costs->name = "mine";
  costs->ways[{profile::Shape::ring, sim::Protocol::ll}].base = {7'000'000};
  spec.machines.push_back({*generate_torus({{4}, {}}), "", "mine", costs, {}});
  spec.collectives = {CollectiveKind::all_gather};
  spec.algorithms = {"ring", "nccl"};
  spec.sizes = {Bytes{1 << 20}, Bytes{1 << 24}};
  const auto errors = forecast::MeasuredErrors::read(
      "profile,collective,machines,min_size,max_size,max_ranks,min_version,max_version,points,low,median,high,held,"
      "systems,gpus\nmine,all_gather,one,1048576,1048576,8,,,20,0.5,1,2,,1,\n");
  ASSERT_TRUE(errors) << errors.error().message;
  spec.errors = std::make_shared<const forecast::MeasuredErrors>(*errors);
  const std::vector<Row> rows = run_all(spec, *list_units(spec), 1);
  ASSERT_EQ(rows.size(), 4U);
  const Figures& inside = *rows[0].figures;
  EXPECT_EQ(inside.high->count, 2 * inside.elapsed.count);
  EXPECT_NEAR(static_cast<double>(inside.low->count), 0.5 * static_cast<double>(inside.elapsed.count), 1);
  EXPECT_EQ(inside.outside, "");
  EXPECT_EQ(rows[1].figures->outside, "measured from 1 MiB to 1 MiB");
  EXPECT_EQ(rows[2].figures->low, std::nullopt);
  EXPECT_EQ(rows[2].figures->outside, "of NCCL's own algorithms alone there are measurements");
}

TEST(RunSweep, MatricesAreOfAllToAllAlone) {
  Spec spec;
  spec.machines.push_back({*generate_torus({{4}, {}}), "", "", nullptr, {}});
  spec.collectives = {CollectiveKind::all_gather, CollectiveKind::all_to_all};
  spec.algorithms = {"pairwise", "ring"};
  spec.sizes = {Bytes{1 << 20}};
  spec.matrices = {"pairs:0-1", ""};
  spec.failures.ranks = true;
  const auto units = list_units(spec);
  ASSERT_TRUE(units) << units.error().message;
  std::map<std::string, double> busbw;
  std::size_t refused = 0;
  for (const Row& row : run_all(spec, *units, 2)) {
    EXPECT_TRUE(row.key.matrix.empty() || row.key.collective == "all_to_all");
    // Ranks of a torus are alike, but not what they send.
    EXPECT_EQ(row.alike, row.key.failure.empty() || !row.key.matrix.empty() ? 1U : 4U) << describe(row.key);
    if (!row.key.matrix.empty() && !row.key.failure.empty())
      refused += row.reason.find("all ranks") != std::string::npos ? 1U : 0U;
    if (row.figures && row.key.failure.empty() && row.key.algorithm == "pairwise") {
      busbw[row.key.collective + " " + row.key.matrix] = row.figures->busbw;
    }
  }
  EXPECT_EQ(refused, 2 * 4U);
  // One message to a neighbour has the cable (and its way round) for itself; busbw of it is algbw.
  ASSERT_EQ(busbw.size(), 2U);
  EXPECT_GT(busbw.at("all_to_all pairs:0-1"), 0);
  EXPECT_NE(busbw.at("all_to_all pairs:0-1"), busbw.at("all_to_all "));
  spec.matrices = {"pairs:0-9"};
  EXPECT_TRUE(list_units(spec).error().message.starts_with("torus-4: ")) << list_units(spec).error().message;
}

TEST(RunSweep, ProtocolsAndEnginesAreThoseOfSimulate) {
  Spec spec;
  spec.machines.push_back({*generate_torus({{4}, {}}), "", "", nullptr, {}});
  spec.collectives = {CollectiveKind::all_gather};
  spec.algorithms = {"ring", "auto"};
  spec.sizes = {Bytes{1 << 16}};
  spec.chunks = {Bytes{4096}};
  spec.models = {sim::ModelKind::link, sim::ModelKind::fair};
  spec.protocols = {sim::Protocol::ll, sim::Protocol::plain};
  spec.copy_engines = {1, 0};
  spec.jitters_ppm = {0, 50'000};
  const auto units = *list_units(spec);
  const std::vector<Row> rows = run_all(spec, units, 1);
  ASSERT_EQ(rows.size(), 2U * 2 * 2 * 2 * 2);
  EXPECT_EQ(text_of(run_all(spec, units, 4)), text_of(rows));
  const Topology& topology = spec.machines.front().topology;
  const auto schedule =
      planners::plan_unbounded(topology, {CollectiveKind::all_gather, 4, {}}, *planners::find_planner("ring"));
  ASSERT_TRUE(schedule);
  for (const Row& row : rows) {
    ASSERT_TRUE(row.figures) << row.reason;
    if (row.key.algorithm != "ring") continue;
    sim::Circumstances circumstances{sim::preset(*sim::parse_protocol(row.key.protocol)), {}};
    circumstances.endpoints.copy_engines = row.key.copy_engines;
    circumstances.conditions = {.changes = {}, .jitter_ppm = row.key.jitter_ppm, .seed = row.key.seed};
    sim::Options options;
    options.size = row.key.size;
    options.chunk = *row.key.chunk;
    options.model = *sim::parse_model(row.key.model);
    options.set(circumstances);
    EXPECT_EQ(row.figures->elapsed,
              sim::simulate(*schedule, topology, options, circumstances.endpoints.engines())->elapsed);
  }
}

TEST(RunSweep, RefusalsAreRowsWithTheirReason) {
  const Spec spec = small_spec();
  std::size_t refused = 0;
  for (const Row& row : run_all(spec, *list_units(spec), 2)) {
    EXPECT_NE(row.figures.has_value(), !row.reason.empty());
    // ring and tree do not make all_to_all, and a ring of four without one has no ring; auto finds something always.
    const bool refuses = row.key.collective == "all_to_all" && row.key.algorithm != "auto";
    const bool may_refuse = refuses || row.key.algorithm == "ring";
    EXPECT_TRUE(row.figures || may_refuse) << describe(row.key) << " " << row.reason;
    EXPECT_FALSE(row.figures && refuses) << describe(row.key);
    refused += refuses ? 1 : 0;
    if (!row.figures) continue;
    EXPECT_GT(row.figures->elapsed.count, 0);
    EXPECT_LE(row.figures->of_bound, 1.0);
    EXPECT_GT(row.figures->busiest_share, 0.0);
    if (row.key.algorithm != "auto") {
      EXPECT_EQ(row.figures->planner, row.key.algorithm);
    }
    if (row.key.chunk) {
      EXPECT_EQ(row.figures->chunk, *row.key.chunk);
    }
  }
  EXPECT_GT(refused, 0U);
}

TEST(RunSweep, WhatCutsRanksOffIsARow) {
  Spec spec = small_spec();
  spec.machines = {{*Topology::make("pair", {{.id = "a"}, {.id = "b"}},
                                    {{NodeId(0), NodeId(1), {{1'000'000}}}, {NodeId(1), NodeId(0), {{1'000'000}}}}),
                    ""}};
  spec.collectives = {CollectiveKind::all_gather};
  spec.failures = {};
  spec.without = {"a-b"};
  spec.whole = false;
  const auto rows = run_all(spec, *list_units(spec), 2);
  ASSERT_FALSE(rows.empty());
  for (const Row& row : rows) EXPECT_EQ(row.reason, "without a-b, b and a cannot reach each other");
}

TEST(RunSweep, AnErrorOfTheTakerEndsIt) {
  const Spec spec = small_spec();
  std::size_t taken = 0;
  const auto done = run_sweep(spec, *list_units(spec), 3, [&](const Row&) -> Result<void> {
    ++taken;
    return fail(ErrorCode::unavailable, "the disk is full");
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the disk is full");
  EXPECT_LE(taken, 3U);
}

TEST(RunSweep, LeavesOutWhatIsKnown) {
  const Spec spec = small_spec();
  const auto all = *list_units(spec);
  const std::vector<Row> rows = run_all(spec, all, 2);
  const std::vector<Row> known(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 3));
  auto rest = all;
  leave_out(rest, known);
  std::vector<Row> together = run_all(spec, rest, 2);
  EXPECT_EQ(together.size() + known.size(), rows.size());
  together.insert(together.end(), known.begin(), known.end());
  std::ranges::sort(together, {}, &Row::key);
  EXPECT_EQ(text_of(together), text_of(rows));
}

TEST(Shard, PartsMergeToTheWhole) {
  const Spec spec = small_spec();
  const auto all = *list_units(spec);
  const std::string whole = text_of(run_all(spec, all, 2));
  // Three parts get whole plans, forty get single rows.
  for (const std::uint32_t count : {3U, 40U}) {
    std::vector<NamedRows> parts;
    std::size_t largest = 0;
    for (std::uint32_t number = 1; number <= count; ++number) {
      auto units = all;
      keep_shard(units, {number, count});
      parts.push_back({"part " + std::to_string(number), run_all(spec, units, 2)});
      largest = std::max(largest, parts.back().rows.size());
    }
    EXPECT_LE(largest, 2 * count_rows(all) / count + 2);
    const auto merged = merge_rows(std::move(parts));
    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(merged->repeated, 0U);
    EXPECT_EQ(text_of(merged->rows), whole);
  }
}

TEST(Shard, IsWrittenAsAFraction) {
  const auto shard = parse_shard("3/8");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->number, 3U);
  EXPECT_EQ(shard->count, 8U);
  for (const char* const text : {"", "3", "0/8", "9/8", "1/0", "-1/8", "1/8x", "a/b", "1 / 8"}) {
    const auto wrong = parse_shard(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_TRUE(wrong.error().message.starts_with("--shard: ")) << wrong.error().message;
  }
}

TEST(Merge, ReportsRowsThatDisagree) {
  const Spec spec = small_spec();
  const std::vector<Row> rows = run_all(spec, *list_units(spec), 2);
  const auto same = merge_rows({{"a.csv", rows}, {"b.csv", rows}});
  ASSERT_TRUE(same);
  EXPECT_EQ(same->repeated, rows.size());
  EXPECT_EQ(text_of(same->rows), text_of(rows));
  std::vector<Row> changed = rows;
  ASSERT_TRUE(changed.front().figures);
  ++changed.front().figures->elapsed.count;
  const auto differ = merge_rows({{"a.csv", rows}, {"b.csv", changed}});
  ASSERT_FALSE(differ);
  EXPECT_TRUE(differ.error().message.starts_with("a.csv and b.csv disagree about all_gather by auto at 4096 B on "))
      << differ.error().message;
}

}  // namespace
}  // namespace espalier::sweep
